// Loads the controls of tables as soon as an answer has a complete table that can scroll.
(() => {
  const { script } = document.getElementById("table-controls").dataset;
  const load = ({ target }) => {
    if (!target.matches?.(".answer__streaming") && document.querySelector(".answer__table[role]")) {
      document.removeEventListener("htmx:load", load);
      import(script);
    }
  };
  document.addEventListener("htmx:load", load);
  load({ target: document });
})();
