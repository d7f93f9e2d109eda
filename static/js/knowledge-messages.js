// Says what a decision did: screen readers announce what is added to a status, and not what it contained when the
// page opened.
(() => {
  const toasts = document.getElementById("toasts");
  const messages = [...toasts.children];
  if (!messages.length) return;
  toasts.replaceChildren();
  // Once the new page and its focus have been announced.
  setTimeout(() => toasts.append(...messages), 300);
})();
