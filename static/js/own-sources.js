// Addresses the reader as "you" in sentences about their own messages and answers. Every reader gets the same HTML.
(() => {
  const { person } = document.body.dataset;

  const apply = (root) => {
    for (const sentence of root.querySelectorAll(`[data-owner="${person}"][data-own-text]`)) {
      sentence.textContent = sentence.dataset.ownText;
    }
  };

  apply(document);
  document.addEventListener("htmx:load", (event) => apply(event.target));
})();
