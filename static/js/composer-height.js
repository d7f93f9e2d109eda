// The height of the composer, for what stays above it.
(() => {
  const dock = document.getElementById("dock");
  if (!dock) return;
  new ResizeObserver(() => {
    document.documentElement.style.setProperty("--dock", `${dock.offsetHeight}px`);
  }).observe(dock);
})();
