// Hides the controls of turns that would be refused to this person. Every reader gets the same HTML, so each control
// names the roles for which it is: those of the person in the thread, and author, or last-author if nobody else wrote
// after it.
(() => {
  const { person, roles = "" } = document.body.dataset;
  const inThread = `${roles} ${document.querySelector(".thread[data-roles]")?.dataset.roles ?? ""}`.split(" ");

  const isLast = (turn) => {
    for (let later = turn.nextElementSibling; later; later = later.nextElementSibling) {
      if (later.dataset.author && later.dataset.author !== person) return false;
    }
    return true;
  };

  const apply = (root) => {
    for (const control of root.querySelectorAll("[data-for]")) {
      const turn = control.closest("[data-author]");
      const allowed = control.dataset.for.split(" ");
      const isAuthor = turn.dataset.author === person;
      control.hidden = !(
        allowed.some((role) => inThread.includes(role)) ||
        (isAuthor && (allowed.includes("author") || (allowed.includes("last-author") && isLast(turn))))
      );
    }
  };

  apply(document);
  // Another person's new turn takes rights from the turns before it.
  document.addEventListener("htmx:load", ({ target }) => apply(target.matches?.(".turn") ? document : target));
})();
