// What was typed and is not kept yet is there again after a reload or a new sign-in, in each thread its own.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const person = document.body.dataset.person;
  const key = () => `draft ${person} ${location.pathname}`;
  const box = () => document.getElementById("message");
  let restored = "";

  try {
    const kept = localStorage.getItem(key());
    // What was on its way when the page was left may have arrived,
    const said = [...document.querySelectorAll(".turn .said")].pop()?.textContent.trim();
    if (kept && kept.trim() === said) localStorage.removeItem(key());
    else if (kept && !box().value) box().value = restored = kept;
  } catch (error) {
    console.warn("Drafts cannot be kept here.", error);
    return;
  }

  // A message that is on its way is still a draft.
  const keep = () => {
    const sending = document.querySelector(".turn.is-sending .said")?.textContent ?? "";
    const text = [sending, box().value].filter((part) => part.trim()).join("\n");
    if (text) localStorage.setItem(key(), text);
    else localStorage.removeItem(key());
  };
  // or arrive now.
  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.id !== "turns" || !restored || box().value !== restored) return;
    if (event.detail.fragment.querySelector(".said")?.textContent.trim() !== restored.trim()) return;
    box().value = "";
    keep();
  });
  form.addEventListener("input", (event) => event.target === box() && keep());
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.target !== form) return;
    if (event.detail.xhr.getResponseHeader("HX-Redirect")) localStorage.removeItem(key());
    else keep();
  });
})();
