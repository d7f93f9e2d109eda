// Enter sends, Shift Enter breaks the line, Escape stops the answer. A message stands on the page while it is sent;
// what could not be sent is in the box again, before what was typed meanwhile.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const box = () => document.getElementById("message");
  const turns = document.getElementById("turns");
  let sending = null;

  function complain(text) {
    const place = document.getElementById("composer-error");
    place.textContent = text;
    const again = document.createElement("button");
    again.type = "submit";
    again.className = "link";
    again.textContent = form.dataset.again;
    place.append(" ", again);
  }

  function write(text) {
    box().value = text;
    box().dispatchEvent(new Event("input", { bubbles: true }));
  }

  // One can write at once; where writing brings up a keyboard over the page, only when asked.
  if (matchMedia("(hover: hover)").matches && !location.hash) box().focus({ preventScroll: true });

  form.addEventListener("keydown", (event) => {
    // 229 is what an input method says while it composes, in browsers that end composing a moment too early.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    if (event.target !== box() || matchMedia("(hover: none) and (pointer: coarse)").matches) return;
    event.preventDefault();
    if (box().value.trim() && navigator.onLine) form.requestSubmit();
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

  // While a message is on its way it stands where it will stand.
  form.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target !== form) return;
    const text = box().value;
    sending = { text, shown: null };
    if (!text.startsWith("/")) {
      sending.shown = document.getElementById("sending").content.firstElementChild.cloneNode(true);
      sending.shown.querySelector(".said").textContent = text.trim();
      document.querySelector(".beginning")?.setAttribute("hidden", "");
      turns.hidden = false;
      turns.append(sending.shown);
    }
    write("");
  });

  // It may come back over the socket before its own request is over.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    if (target.id === "message") event.detail.shouldSwap = false;
    if (target !== turns || !sending?.shown) return;
    if (fragment.querySelector(".said")?.textContent.trim() === sending.text.trim()) sending.shown.remove();
  });

  form.addEventListener("htmx:afterRequest", (event) => {
    if (event.target !== form || !sending) return;
    const { text, shown } = sending;
    const { status } = event.detail.xhr;
    sending = null;
    // A first message is on its way to the page of its thread: until that is there, it stays.
    if (event.detail.xhr.getResponseHeader("HX-Redirect")) return;
    shown?.remove();
    if (status >= 200 && status < 300) {
      for (const chip of form.querySelectorAll(".chip.is-image")) chip.remove();
      return;
    }
    document.querySelector(".beginning")?.removeAttribute("hidden");
    write([text, box().value].filter((part) => part.trim()).join("\n"));
    if (status === 0 || status >= 500) complain(form.dataset.unsent);
  });

  // A message that was taken back before its answer began is written on.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const { elt, xhr } = event.detail;
    if (!elt.matches?.("[data-withdraws]")) return;
    const text = elt.closest(".turn").querySelector(".said").textContent;
    // The turn may be gone from the page before its request is over.
    xhr.addEventListener("load", () => {
      if (xhr.status !== 204) return;
      write([text, box().value].filter((part) => part.trim()).join("\n"));
      box().focus();
    });
  });
})();
