// Keyboard shortcuts. The dialog that ? opens lists those that do something on this page. On a Mac, Command is Ctrl.
(() => {
  const list = document.getElementById("shortcuts");
  if (!list) return;
  const lastShown = (selector) =>
    [...document.querySelectorAll(selector)].filter((node) => node.checkVisibility()).pop();
  const click = (selector) => [selector, (node) => node.click()];
  // A link of the sidebar, which narrow windows hide until its menu is opened.
  const inSidebar = (selector) => () => document.querySelector(`.sidebar ${selector}`);

  const threads = () => [...document.querySelectorAll(".sidebar li[id^='listed-'] > :first-child")];
  const neighbour = (by) => {
    const links = threads();
    const at = links.findIndex((link) => link.hasAttribute("aria-current"));
    // Without a current thread, the first one is next.
    return at < 0 ? (by > 0 ? links[0] : undefined) : links[at + by];
  };

  // What each key needs on the page, as a selector or a function, and what it does with it.
  const shortcuts = {
    "ctrl+k": click(inSidebar("a[data-quick-search]")),
    "ctrl+shift+f": [inSidebar("a[data-quick-search]"), (link) => (location.href = link.href)],
    "ctrl+shift+o": [inSidebar("[data-new-thread]"), (link) => (location.href = link.href)],
    "alt+arrowup": [() => neighbour(-1), (link) => link.click()],
    "alt+arrowdown": [() => neighbour(1), (link) => link.click()],
    "ctrl+shift+s": click(".sidebar [data-sidebar-toggle]"),
    "ctrl+shift+l": ["#message", (composer) => composer.focus()],
    "ctrl+shift+enter": click("#turns > .turn:last-child [data-regenerate]"),
    "ctrl+shift+c": click(".turn [data-copy='answer']"),
    "ctrl+shift+;": click("button.code-block__copy"),
    "ctrl+/": [() => list, open],
    "?": [() => list, open],
  };
  const targetOf = ([target]) => (typeof target === "function" ? target() : lastShown(target));

  function open() {
    import(list.dataset.script);
    for (const row of list.querySelectorAll("[data-key]")) row.hidden = !targetOf(shortcuts[row.dataset.key]);
    for (const row of list.querySelectorAll("[data-needs]")) row.hidden = !lastShown(row.dataset.needs);
    list.showModal();
  }

  function keyOf(event) {
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (event.key === "?" && !event.ctrlKey && !event.metaKey && !event.altKey) {
      return isTyping || document.documentElement.dataset.singleKeys === "off" ? "" : "?";
    }
    // With Alt, an arrow opens a menu or moves through a text.
    if (event.altKey && (isTyping?.matches("select") || isTyping?.value)) return "";
    // Many keyboards need Shift for a slash.
    const modifiers = [
      (event.ctrlKey || event.metaKey) && "ctrl",
      event.altKey && "alt",
      event.shiftKey && event.key !== "/" && "shift",
    ];
    const key = event.key === ":" ? ";" : event.key.toLowerCase();
    return [...modifiers.filter(Boolean), key].join("+");
  }

  document.addEventListener("keydown", (event) => {
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    const shortcut = shortcuts[keyOf(event)];
    const target = shortcut && targetOf(shortcut);
    if (!target) return;
    event.preventDefault();
    shortcut[1](target);
  });

  document.addEventListener("click", (event) => event.target === list && list.close());
})();
