// A middle click on a citation opens the place of its source in a new tab.
(() => {
  document.addEventListener("auxclick", (event) => {
    const citation = event.button === 1 && event.target.closest("a.citation[data-source]");
    const link = citation && document.querySelector(`${citation.hash} [aria-keyshortcuts="o"]`);
    if (!link) return;
    event.preventDefault();
    window.open(link.href, "_blank", "noopener");
  });
})();
