// The sidebar: hidden or shown on a wide page; on a phone, a drawer that holds the focus while it is open.
(() => {
  const root = document.documentElement;
  const sidebar = document.getElementById("sidebar");
  const narrow = matchMedia("(max-width: 49.999rem)");
  if (!sidebar) return;

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-sidebar-toggle]");
    if (!button || narrow.matches) return;
    event.preventDefault();
    root.dataset.sidebar = root.dataset.sidebar === "closed" ? "open" : "closed";
    try {
      localStorage.setItem("cato-sidebar", root.dataset.sidebar);
    } catch {
      // Storage can be forbidden; the choice then lasts as long as the page.
    }
    const next = root.dataset.sidebar === "closed" ? ".menu-button" : ".sidebar-toggle";
    document.querySelector(next)?.focus();
  });

  sidebar.addEventListener("toggle", (event) => {
    document.getElementById("main").inert = event.newState === "open";
  });

  narrow.addEventListener("change", () => sidebar.matches(":popover-open") && sidebar.hidePopover());
})();
