// The height of the composer, which grows with its lines: what has the focus, and messages, stay above it.
(() => {
  const dock = document.getElementById("dock");
  if (!dock) return;
  new ResizeObserver(() => {
    document.documentElement.style.setProperty("--dock", `${dock.offsetHeight}px`);
  }).observe(dock);
})();
