// Puts the cited passages first in their panel when the answer is complete, and the others below them. A panel that is
// open is arranged when it is closed, so that nothing moves while somebody reads in it.
(() => {
  function arrange(panel) {
    const line = panel.querySelector("[data-cited]");
    const [list, others] = panel.querySelectorAll(".recall__list");
    if (!line || panel.open) return;
    const cited = line.dataset.cited.split(" ");
    const items = [...list.children];
    if (items.every((item, index) => item.dataset.number === cited[index])) return;
    others.append(...items.filter((item) => !cited.includes(item.dataset.number)));
    for (const number of cited) list.append(...items.filter((item) => item.dataset.number === number));
  }

  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const panel = event.detail.target?.closest(".recall__panel");
    if (panel) arrange(panel);
  });
  document.addEventListener("toggle", ({ target }) => target.matches(".recall__panel") && arrange(target), true);
})();
