// Opens the recalled passages for people who want them expanded, and where a citation or link points to one.
(() => {
  const openAll = (root) => {
    if (document.body.dataset.recallDisplay !== "on") return;
    const panels = root.matches?.(".recall__panel") ? [root] : root.querySelectorAll(".recall__panel");
    for (const panel of panels) panel.open = true;
  };

  const openTarget = () => {
    const item = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest(".recall-item");
    if (!item) return;
    item.closest(".recall__panel").open = true;
    const passage = item.querySelector("details");
    if (passage) passage.open = true;
    item.scrollIntoView({ block: "nearest" });
  };

  // Only one passage is open at a time.
  document.addEventListener("toggle", (event) => {
    const passage = event.target;
    if (!passage.open || !passage.parentElement?.matches(".recall-item")) return;
    for (const other of passage.closest(".recall__panel, .page").querySelectorAll(".recall-item details[open]")) {
      if (other !== passage) other.open = false;
    }
  }, true);

  // The arrow keys move between the passages.
  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const summary = event.target.closest(".recall-item summary");
    if (!step || !summary) return;
    const all = [...summary.closest(".recall__panel").querySelectorAll(".recall-item summary")].filter((item) =>
      item.checkVisibility());
    const next = all[all.indexOf(summary) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });

  openAll(document);
  openTarget();
  addEventListener("hashchange", openTarget);
  document.addEventListener("htmx:load", (event) => openAll(event.target));
})();
