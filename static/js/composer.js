// Shows a message in the thread while it is sent. If it cannot be sent, its text returns to the composer, before what
// was typed meanwhile.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const textarea = () => document.getElementById("message");
  const turns = document.getElementById("turns");
  let pending = null;

  function showError(text) {
    const error = document.getElementById("composer-error");
    error.textContent = text;
    const retry = document.createElement("button");
    retry.type = "submit";
    retry.className = "link";
    retry.textContent = form.dataset.retryLabel;
    error.append(" ", retry);
  }

  function setDraft(text) {
    textarea().value = text;
    textarea().dispatchEvent(new Event("input", { bubbles: true }));
  }

  const prependToDraft = (text) => setDraft([text, textarea().value].filter((part) => part.trim()).join("\n"));

  // The next message is sent once this one has arrived, unless it was changed by then.
  form.addEventListener("submit", (event) => {
    if (!pending) return;
    pending.next = textarea().value;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  form.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target !== form) return;
    const text = textarea().value;
    pending = { text, turn: null, chips: [] };
    if (!text.startsWith("/")) {
      pending.chips = [...document.querySelectorAll("#chips .chip")];
      pending.turn = document.getElementById("pending-turn").content.firstElementChild.cloneNode(true);
      pending.turn.querySelector(".turn__message-text").textContent = text.trim();
      document.querySelector(".empty-thread")?.setAttribute("hidden", "");
      turns.hidden = false;
      turns.append(pending.turn);
    }
    setDraft("");
  });

  // The turn can arrive over the socket before the response to its own request.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    const { target, fragment } = event.detail;
    if (target.id === "message") event.detail.shouldSwap = false;
    if (target !== turns || !pending?.turn) return;
    const text = fragment.querySelector(".turn__message-text")?.textContent.trim();
    if (text === pending.text.trim()) pending.turn.remove();
  });

  form.addEventListener("htmx:afterRequest", (event) => {
    if (event.target !== form || !pending) return;
    const { text, turn, chips, next } = pending;
    const { status } = event.detail.xhr;
    const isSent = status >= 200 && status < 300;
    pending = null;
    // The first message leads to the page of its thread; it stays visible until that page is there.
    if (isSent && event.detail.xhr.getResponseHeader("HX-Redirect")) return;
    turn?.remove();
    if (isSent) {
      for (const chip of chips) chip.remove();
      if (next && next === textarea().value) form.requestSubmit();
      return;
    }
    document.querySelector(".empty-thread")?.removeAttribute("hidden");
    prependToDraft(text);
    // The server says at the composer what is wrong with a message.
    if (status !== 422) showError(form.dataset.sendFailed);
  });
})();
