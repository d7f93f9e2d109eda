// Keeps the focus on the same control of a turn or footer that is replaced, or moves it to the heading.
(() => {
  let focused;

  document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target, fragment } }) => {
    if (target.matches(".turn, .turn__footer")) focused = target.querySelector(":focus") ?? focused;
    if (!focused) return;
    const controls = [...fragment.querySelectorAll("a, button, summary")];
    const same = controls.find((control) => control.textContent === focused.textContent);
    const next = same ?? fragment.querySelector("h2, summary");
    // A version is removed before the other one is added.
    if (next) focused = null;
    setTimeout(() => {
      focused = null;
      next?.focus({ preventScroll: true });
    });
  });
})();
