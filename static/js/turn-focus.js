// Keeps the focus on the same control when a turn or its footer is replaced, also by another version.
(() => {
  let focused;

  document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target, fragment } }) => {
    const { activeElement } = document;
    if (target.matches(".turn, .turn__footer") && target.contains(activeElement)) focused = activeElement;
    if (!focused) return;
    const controls = [...fragment.querySelectorAll("a, button, summary")];
    const same = controls.find((control) => control.textContent === focused.textContent);
    // A version is removed before the other one is added.
    if (same) focused = null;
    setTimeout(() => {
      focused = null;
      same?.focus({ preventScroll: true });
    });
  });
})();
