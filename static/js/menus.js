// Closes a menu on a click elsewhere, when the focus leaves it, and with Escape.
(() => {
  const close = (menu, returnFocus) => {
    menu.open = false;
    if (returnFocus) menu.querySelector("summary").focus();
  };
  const openMenus = () => document.querySelectorAll("details.menu[open]");

  document.addEventListener("click", (event) => {
    for (const menu of openMenus()) {
      const isDone = event.target.closest(".menu__list a, .menu__list button");
      if (isDone || !menu.contains(event.target)) close(menu, false);
    }
  });
  document.addEventListener("focusin", (event) => {
    for (const menu of openMenus()) if (!menu.contains(event.target)) close(menu, false);
  });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape") return;
      for (const menu of openMenus()) {
        close(menu, true);
        event.stopPropagation();
      }
    },
    true,
  );
})();
