// Enter sends, Shift Enter starts a new line, the arrow up edits the last message, Escape stops one's own answer.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const textarea = () => document.getElementById("message");

  // The textarea has the focus at once, except where that opens a keyboard on the screen.
  if (matchMedia("(hover: hover)").matches && !location.hash) textarea().focus({ preventScroll: true });

  // The button that removed the limit of recall is gone.
  form.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id === "recall-filter") textarea().focus();
  });

  form.addEventListener("keydown", (event) => {
    // Some browsers end a composition too early; its last key has the code 229.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    if (event.target !== textarea() || matchMedia("(hover: none) and (pointer: coarse)").matches) return;
    event.preventDefault();
    if (textarea().value.trim() && navigator.onLine) form.requestSubmit();
  });

  form.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" || event.target !== textarea() || textarea().value || event.isComposing) return;
    const edit = [...document.querySelectorAll("[data-edit]:not([hidden])")].pop();
    if (!edit) return;
    event.preventDefault();
    edit.click();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
    if (document.querySelector("dialog[open], [popover]:popover-open")) return;
    // The answer to somebody else is stopped by a click only.
    document.querySelector(`.send-button--stop[data-asker="${document.body.dataset.person}"]`)?.click();
  });

  form.addEventListener("click", (event) => {
    if (event.target === form || event.target.classList.contains("composer__tools")) textarea().focus();
  });
})();
