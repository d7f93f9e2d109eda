// Saves the text of the composer per thread, so that it survives a reload.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const { person } = document.body.dataset;
  let path = location.pathname;
  const key = () => `draft ${person} ${path}`;
  const textarea = () => document.getElementById("message");
  let restored = "";

  try {
    const draft = localStorage.getItem(key());
    // A message that was being sent when the page was left can have arrived already.
    const lastMessage = [...document.querySelectorAll(".turn .turn__message-text")].pop()?.textContent.trim();
    if (draft && draft.trim() === lastMessage) localStorage.removeItem(key());
    else if (draft && !textarea().value) textarea().value = restored = draft;
  } catch (error) {
    console.warn("Drafts cannot be saved in this browser.", error);
    return;
  }

  // A message that is being sent is still part of the draft.
  const save = () => {
    // After a redirect, the message that is still shown has arrived.
    const hasArrived = path !== location.pathname;
    const pending = !hasArrived && document.querySelector(".turn--sending .turn__message-text")?.textContent;
    const text = [pending || "", textarea().value].filter((part) => part.trim()).join("\n");
    if (text) localStorage.setItem(key(), text);
    else localStorage.removeItem(key());
  };
  // The message of a restored draft can also arrive now, over the socket.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.id !== "turns" || !restored || textarea().value !== restored) return;
    if (event.detail.fragment.querySelector(".turn__message-text")?.textContent.trim() !== restored.trim()) return;
    textarea().value = "";
    save();
  });
  form.addEventListener("input", (event) => event.target === textarea() && save());
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.target !== form) return;
    const { xhr } = event.detail;
    const next = xhr.status === 200 ? xhr.getResponseHeader("HX-Redirect") : null;
    if (next) localStorage.removeItem(key());
    // What is written until the page of the new thread is there is a draft of that page.
    if (next?.startsWith("/t/")) path = new URL(next, location).pathname;
    if (!next || textarea().value) save();
  });
})();
