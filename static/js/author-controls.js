// Hides the controls that only the author of a message or the owner of the thread may use. Every reader gets the same
// HTML, so the server cannot leave them out.
(() => {
  const { person } = document.body.dataset;
  const isOwner = document.querySelector(".thread[data-is-owner]") !== null;
  if (isOwner) return;

  const apply = (root) => {
    for (const control of root.querySelectorAll("[data-author-only]")) {
      control.hidden = control.closest("[data-author]").dataset.author !== person;
    }
  };

  apply(document);
  document.addEventListener("htmx:load", (event) => apply(event.target));
})();
