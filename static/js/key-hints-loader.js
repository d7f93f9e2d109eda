// Loads what counts the use of keys while their hints are shown.
(() => {
  const hints = document.getElementById("key-hints");
  if (hints?.offsetHeight) import(hints.dataset.script);
})();
