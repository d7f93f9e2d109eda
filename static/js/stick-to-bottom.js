// Keeps the end of a growing answer in view while the reader is at the end; otherwise offers a button to it.
(() => {
  const MARGIN = 120; // pixels
  const page = document.scrollingElement;
  const turns = document.getElementById("turns");
  const button = document.querySelector("[data-to-latest]");
  if (!turns || !button) return;
  const toEnd = () => page.scrollTo({ top: page.scrollHeight, behavior: "instant" });
  const atEnd = () => page.scrollHeight - page.scrollTop - innerHeight < MARGIN;
  let following = true;

  addEventListener("scroll", () => {
    following = atEnd();
    button.hidden = following;
  }, { passive: true });

  button.addEventListener("click", () => {
    toEnd();
    document.getElementById("message")?.focus({ preventScroll: true });
  });

  // Opening a recalled passage changes the height as well; then, and while a source is open, the page must not scroll.
  let opened = 0;
  const isReading = () => performance.now() - opened <= 400 || turns.querySelector(".source-card") !== null;
  turns.addEventListener("toggle", () => (opened = performance.now()), true);
  new ResizeObserver(() => {
    if (following && !isReading()) toEnd();
    else button.hidden = atEnd();
  }).observe(turns);

  // Earlier turns are inserted above; what the reader sees stays in its place.
  turns.addEventListener("htmx:beforeSwap", (event) => {
    if (!event.target.matches(".thread__load-more")) return;
    const line = event.target.nextElementSibling;
    const before = line.getBoundingClientRect().top;
    turns.addEventListener("htmx:afterSettle", () => {
      page.scrollBy({ top: line.getBoundingClientRect().top - before, behavior: "instant" });
    }, { once: true });
  });

  document.getElementById("composer")?.addEventListener("submit", () => {
    following = true;
    toEnd();
  });

  // Going back restores the scroll position; opening or reloading a thread starts at its end.
  const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  if (isBack || location.hash.startsWith("#turn-")) {
    following = false;
  } else {
    history.scrollRestoration = "manual";
    toEnd();
  }
})();
