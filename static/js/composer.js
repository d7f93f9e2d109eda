// Enter sends, Shift Enter breaks the line, Escape stops the answer; what was typed meanwhile is kept.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const box = () => document.getElementById("message");
  const complain = (text) => {
    document.getElementById("composer-error").textContent = text;
  };
  let sent = "";

  // One can write at once; where writing brings up a keyboard over the page, only when asked.
  if (matchMedia("(hover: hover)").matches && !location.hash) box().focus({ preventScroll: true });

  form.addEventListener("keydown", (event) => {
    // 229 is what an input method says while it composes, in browsers that end composing a moment too early.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    if (event.target !== box() || matchMedia("(hover: none) and (pointer: coarse)").matches) return;
    event.preventDefault();
    if (box().value.trim()) form.requestSubmit();
  });

  // In an empty box the arrow up changes what was said last.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowUp" || event.target !== box() || box().value || event.isComposing) return;
    const edit = [...document.querySelectorAll("[data-edit]")].pop();
    if (!edit) return;
    event.preventDefault();
    edit.click();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
    if (document.querySelector("dialog[open], [popover]:popover-open")) return;
    document.querySelector(".send-button.is-stop")?.click();
  });

  form.addEventListener("click", (event) => {
    if (event.target === form || event.target.classList.contains("composer-tools")) box().focus();
  });

  form.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target === form) sent = box().value;
  });

  // An accepted message empties the box: only what was sent goes, and box, focus and keyboard stay.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.id !== "message") return;
    event.detail.shouldSwap = false;
    const field = event.detail.target;
    field.value = field.value.startsWith(sent) ? field.value.slice(sent.length).trimStart() : field.value;
    sent = "";
  });

  for (const name of ["htmx:sendError", "htmx:timeout"]) {
    form.addEventListener(name, (event) => event.target === form && complain(form.dataset.unsent));
  }
  form.addEventListener("htmx:responseError", (event) => {
    if (event.target === form && event.detail.xhr.status >= 500) complain(form.dataset.unsent);
  });
})();
