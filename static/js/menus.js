// A small menu closes when something else is pressed, when focus leaves it, and with Escape.
(() => {
  const close = (menu, back) => {
    menu.open = false;
    if (back) menu.querySelector("summary").focus();
  };
  const opened = () => document.querySelectorAll("details.menu[open]");

  document.addEventListener("click", (event) => {
    for (const menu of opened()) {
      const isDone = event.target.closest(".menu-list a, .menu-list button");
      if (isDone || !menu.contains(event.target)) close(menu, false);
    }
  });
  document.addEventListener("focusin", (event) => {
    for (const menu of opened()) if (!menu.contains(event.target)) close(menu, false);
  });
  document.addEventListener(
    "keydown",
    (event) => {
      if (event.key !== "Escape") return;
      for (const menu of opened()) {
        close(menu, true);
        event.stopPropagation();
      }
    },
    true,
  );
})();
