// Shows and hides the sidebar. On phones it is a drawer, and the page behind it cannot be focused while it is open.
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
      // The browser can forbid storage; the choice is then lost with the page.
    }
    const next = root.dataset.sidebar === "closed" ? ".topbar__menu-button" : ".sidebar__toggle";
    document.querySelector(next)?.focus();
  });

  sidebar.addEventListener("toggle", (event) => {
    document.getElementById("main").inert = event.newState === "open";
  });

  narrow.addEventListener("change", () => sidebar.matches(":popover-open") && sidebar.hidePopover());
})();
