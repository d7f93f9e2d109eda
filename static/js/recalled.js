// What was recalled opens by itself for who wants it so, and where a number or link points to a passage.
(() => {
  const openAll = (root) => {
    if (document.body.dataset.context !== "on") return;
    const panels = root.matches?.(".panel") ? [root] : root.querySelectorAll(".panel");
    for (const panel of panels) panel.open = true;
  };

  const openTarget = () => {
    const item = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest(".item");
    if (!item) return;
    item.closest(".panel").open = true;
    const passage = item.querySelector("details");
    if (passage) passage.open = true;
    item.scrollIntoView({ block: "nearest" });
  };

  // One passage at a time, and the arrow keys walk them.
  document.addEventListener("toggle", (event) => {
    const passage = event.target;
    if (!passage.open || !passage.parentElement?.matches(".item")) return;
    for (const other of passage.closest(".items").querySelectorAll("details[open]")) {
      if (other !== passage) other.open = false;
    }
  }, true);

  document.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const here = event.target.closest(".item summary");
    if (!step || !here) return;
    const all = [...here.closest(".items").querySelectorAll("summary")];
    const next = all[all.indexOf(here) + step];
    if (!next) return;
    event.preventDefault();
    next.focus();
  });

  openAll(document);
  openTarget();
  addEventListener("hashchange", openTarget);
  document.addEventListener("htmx:load", (event) => openAll(event.target));
})();
