// Keeps the focus on the same control when the footer of a turn is replaced.
(() => {
  let focused = null;

  document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target } }) => {
    focused = target.matches(".turn__footer") && target.contains(document.activeElement) && document.activeElement;
  });
  document.addEventListener("htmx:oobAfterSwap", ({ detail: { target } }) => {
    if (!focused || focused.isConnected) return;
    const controls = document.getElementById(target.id).querySelectorAll("a, button, summary");
    const same = [...controls].find((control) => control.textContent === focused.textContent);
    same?.focus({ preventScroll: true });
  });
})();
