// The quick search dialog: opens from its link, and the arrow keys and Enter choose a result.
(() => {
  const dialog = document.getElementById("quick-search");
  if (!dialog) return;
  const field = document.getElementById("quick-search-query");
  const results = () => [...dialog.querySelectorAll("[data-result]")];
  let selected = 0;

  function markSelected() {
    for (const [number, result] of results().entries()) result.toggleAttribute("data-active", number === selected);
    results()[selected]?.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-quick-search]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      if (!dialog.open) dialog.showModal();
      field.select();
      htmx.trigger(field, "open");
    } else if (event.target === dialog) {
      dialog.close();
    }
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "quick-search-results") return;
    selected = 0;
    markSelected();
  });

  field.addEventListener("keydown", (event) => {
    if (event.isComposing || event.keyCode === 229) return;
    const count = results().length;
    if (event.key === "Enter" && results()[selected]) {
      event.preventDefault();
      results()[selected].click();
    } else if (count && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      selected = (selected + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
      markSelected();
    }
  });
})();
