// Follows an answer only while its reader is at the end; otherwise offers the way back there.
(() => {
  const near = 120;
  const page = document.scrollingElement;
  const turns = document.getElementById("turns");
  const button = document.querySelector("[data-to-latest]");
  if (!turns || !button) return;
  const toEnd = () => page.scrollTo({ top: page.scrollHeight, behavior: "instant" });
  const atEnd = () => page.scrollHeight - page.scrollTop - innerHeight < near;
  let following = true;

  addEventListener("scroll", () => {
    following = atEnd();
    button.hidden = following;
  }, { passive: true });

  button.addEventListener("click", () => {
    toEnd();
    document.getElementById("message")?.focus({ preventScroll: true });
  });

  // Opening a passage changes the height too, but then the reader's line stays where it is.
  let opened = 0;
  turns.addEventListener("toggle", () => (opened = performance.now()), true);
  new ResizeObserver(() => {
    if (following && performance.now() - opened > 400) toEnd();
    else button.hidden = atEnd();
  }).observe(turns);

  // Earlier turns come above the reader's line, which stays where it is.
  turns.addEventListener("htmx:beforeSwap", (event) => {
    if (!event.target.matches(".window")) return;
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

  // Whoever goes back finds the place they left; whoever opens or reloads a thread begins at its end.
  const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  if (isBack || location.hash.startsWith("#turn-")) {
    following = false;
  } else {
    history.scrollRestoration = "manual";
    toEnd();
  }
})();
