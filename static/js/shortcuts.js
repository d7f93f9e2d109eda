// Keyboard shortcuts; the dialog that Ctrl / opens lists them.
(() => {
  const list = document.getElementById("shortcuts");
  if (!list) return;
  const copyLastCode = () => [...document.querySelectorAll("button.code-block__copy")].pop()?.click();

  const shortcuts = {
    k: { run: () => document.querySelector("a[data-quick-search]").click() },
    o: { shift: true, run: () => (location.href = document.querySelector("[data-new-thread]").href) },
    s: { shift: true, run: () => document.querySelector(".sidebar [data-sidebar-toggle]")?.click() },
    ";": { shift: true, run: copyLastCode },
    ":": { shift: true, run: copyLastCode },
    "/": { run: () => list.showModal() },
  };

  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.isComposing) return;
    const shortcut = shortcuts[event.key.toLowerCase()];
    if (!shortcut || Boolean(shortcut.shift) !== event.shiftKey) return;
    event.preventDefault();
    shortcut.run();
  });

  document.addEventListener("click", (event) => event.target === list && list.close());
})();
