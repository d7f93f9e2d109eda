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
  // A message that was just sent is shown wherever its author was reading.
  let sent = -Infinity;
  const isSending = () => performance.now() - sent < 1000;
  let lastTop = 0;

  // The button says how many turns came since the reader was at the end.
  const plainLabel = button.ariaLabel;
  let lastSeen = null;
  function countNew() {
    const ids = [...turns.querySelectorAll(":scope > .turn")].map((turn) => turn.id);
    if (lastSeen === null || atEnd()) lastSeen = ids.at(-1);
    const count = ids.length - 1 - ids.indexOf(lastSeen);
    button.querySelector("[data-count]").textContent = count || "";
    button.ariaLabel = count ? button.dataset.newLabel.replace("*", count) : plainLabel;
  }

  addEventListener("scroll", () => {
    if (page.scrollTop < lastTop) sent = -Infinity; // the reader scrolls up
    lastTop = page.scrollTop;
    following = isSending() || atEnd();
    button.hidden = following;
    countNew();
  }, { passive: true });

  button.addEventListener("click", () => {
    toEnd();
    document.getElementById("message")?.focus({ preventScroll: true });
  });

  // Opening and closing a source changes the height as well; then, and while one is open, the page must not scroll.
  let opened = 0;
  const isReading = () => performance.now() - opened <= 400 || turns.querySelector(".source-card") !== null;
  for (const name of ["toggle", "source-card:close"]) {
    turns.addEventListener(name, () => (opened = performance.now()), true);
  }
  new ResizeObserver(() => {
    if (isSending() || (following && !isReading())) toEnd();
    else button.hidden = atEnd();
    countNew();
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

  document.getElementById("composer")?.addEventListener("htmx:beforeRequest", (event) => {
    if (event.target.id !== "composer") return;
    sent = performance.now();
    following = true;
    toEnd();
  });

  // Going back restores the scroll position; opening or reloading a thread starts at its end.
  const news = document.getElementById("news");
  const isBack = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  if (isBack || location.hash.startsWith("#turn-")) {
    following = false;
  } else {
    history.scrollRestoration = "manual";
    toEnd();
    news?.scrollIntoView({ block: "start", behavior: "instant" });
    following = atEnd();
  }
})();
