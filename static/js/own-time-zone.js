// Chooses the browser's time zone for a digest that has not been switched on yet.
(() => {
  const zones = document.getElementById("digest-zone");
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if ([...zones.options].some((option) => option.value === own)) zones.value = own;
})();
