// Hides what only the author of a message and the owner of the thread may do: turns are drawn once for all readers.
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
