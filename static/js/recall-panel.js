// Opens the recalled passages for people who want them expanded, and the one that the address points to.
(() => {
  const openAll = (root) => {
    if (document.body.dataset.recallDisplay !== "on") return;
    const panels = root.matches?.(".recall__panel") ? [root] : root.querySelectorAll(".recall__panel");
    for (const panel of panels) panel.open = true;
  };

  const openTarget = () => {
    const item = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest(".recall-item");
    if (!item) return;
    for (let parent = item.parentElement; parent; parent = parent.parentElement) {
      if (parent.matches("details")) parent.open = true;
    }
    const passage = item.querySelector("details");
    if (passage) passage.open = true;
    item.scrollIntoView({ block: "nearest" });
  };

  // Only one passage of a panel is open at a time, and Tab enters the panel at the one visited last.
  const itemsOf = (item) => item.closest(".recall__panel, .page")?.querySelectorAll(".recall-item") ?? [];
  document.addEventListener("toggle", ({ target }) => {
    if (!target.open || !target.matches(".recall-item > :first-child")) return;
    for (const item of itemsOf(target)) {
      if (item !== target.parentElement && item.querySelector("details")) item.querySelector("details").open = false;
    }
  }, true);
  document.addEventListener("focusin", ({ target }) => {
    if (!target.matches(".recall__panel .recall-item > :first-child > summary")) return;
    for (const item of itemsOf(target)) item.querySelector("summary")?.setAttribute("tabindex", "-1");
    target.removeAttribute("tabindex");
  });

  openAll(document);
  openTarget();
  addEventListener("hashchange", openTarget);
  document.addEventListener("htmx:load", (event) => openAll(event.target));
})();
