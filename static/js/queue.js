// Keeps the focus when the queue is replaced, on the same message; says where a moved message is now; and puts the
// text and the files of one that is edited into the composer. Its placeholder says when a message will be queued.
(() => {
  const textarea = () => document.getElementById("message");
  let focused = "";

  document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target } }) => {
    if (target.id === "queue") focused = target.contains(document.activeElement) ? document.activeElement.id : "";
  });
  document.addEventListener("htmx:oobAfterSwap", ({ detail: { target } }) => {
    const { idle, running } = textarea().dataset;
    textarea().placeholder = document.querySelector("[data-stops-turn]") ? running : idle;
    if (target.id !== "queue" || !focused) return;
    const edit = document.getElementById(focused.replace(/^[a-z]+/, "edit"));
    (document.getElementById(focused) ?? edit ?? textarea()).focus();
    const { announcement } = edit?.closest("li").dataset ?? {};
    if (focused.startsWith("move") && announcement) document.getElementById("live-region").textContent = announcement;
  });

  document.addEventListener("htmx:beforeRequest", ({ detail: { elt, xhr } }) => {
    const edited = document.getElementById(elt.dataset?.edits);
    if (!edited) return;
    const text = edited.querySelector(".turn__message-text").textContent;
    // The turn can be removed from the page before the response arrives.
    xhr.addEventListener("load", () => {
      if (xhr.status !== 200) return;
      textarea().value = [text, textarea().value].filter((part) => part.trim()).join("\n");
      textarea().dispatchEvent(new Event("input", { bubbles: true }));
      htmx.swap("#chips", xhr.responseText, { swapStyle: "beforeend" });
      textarea().focus();
    });
  });
})();
