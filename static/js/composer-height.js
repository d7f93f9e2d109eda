// Keeps what has the focus above the composer, however many lines are written in it: the browser scrolls that far.
(() => {
  const dock = document.getElementById("dock");
  if (!dock) return;
  const { style } = document.documentElement;
  new ResizeObserver(() => {
    style.scrollPaddingBlockEnd = `max(10rem, ${dock.offsetHeight}px + 1.5rem)`;
  }).observe(dock);
})();
