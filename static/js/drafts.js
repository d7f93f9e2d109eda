// What was typed and not sent is there again after a reload or a new sign-in, in each thread its own.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const person = document.body.dataset.person;
  const key = () => `draft ${person} ${location.pathname}`;
  const box = () => document.getElementById("message");

  try {
    const kept = localStorage.getItem(key());
    if (kept && !box().value) box().value = kept;
  } catch (error) {
    console.warn("Drafts cannot be kept here.", error);
    return;
  }

  const keep = () => {
    if (box().value.trim()) localStorage.setItem(key(), box().value);
    else localStorage.removeItem(key());
  };
  form.addEventListener("input", (event) => event.target === box() && keep());
  form.addEventListener("submit", () => localStorage.removeItem(key()));
  // A message that was refused or not sent is a draft again.
  document.addEventListener("htmx:afterRequest", (event) => {
    const { status } = event.detail.xhr;
    if (event.target === form && (status < 200 || status >= 400)) keep();
  });
})();
