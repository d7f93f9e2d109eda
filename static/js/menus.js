// Closes a menu on a click, when the focus leaves it, and with Escape.
(() => {
  const close = (menu, returnFocus) => {
    menu.open = false;
    if (returnFocus) menu.querySelector("summary").focus();
  };
  const openMenus = () => document.querySelectorAll("details.menu[open]");

  document.addEventListener("click", ({ target }) => {
    for (const menu of openMenus()) {
      const isDone = target.closest(".menu__list a, .menu__list button");
      if (isDone || !menu.contains(target)) close(menu, isDone);
    }
  });
  document.addEventListener("focusin", ({ target }) => {
    for (const menu of openMenus()) if (!menu.contains(target)) close(menu);
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
