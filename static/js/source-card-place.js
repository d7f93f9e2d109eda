// Places source cards: in the margin level with the line of the citation, or below its paragraph, where the text below
// makes room. On phones the card is a sheet, which needs no place.
(() => {
  const GAP = 8; // pixels
  const FIRST_LINE = 19; // pixels from the top of a card to the middle of its first line
  const wide = matchMedia("(min-width: 75rem)");
  const blockOf = (citation) => citation.closest(".answer__table, li, p, h1, h2, h3, h4, h5, h6");

  function clear(card) {
    card.parentElement?.removeAttribute("style");
    card.room?.removeAttribute("style");
  }

  function place(card) {
    const turn = card.parentElement;
    if (!turn || card.matches(":modal") || !card.citation.isConnected) return;
    clear(card);
    const { top } = turn.getBoundingClientRect();
    const line = card.citation.getBoundingClientRect();
    if (wide.matches) {
      const level = line.top + line.height / 2 - FIRST_LINE - top;
      const free = turn.querySelector(".recall").getBoundingClientRect().bottom + GAP - top;
      card.style.insetBlockStart = `${Math.max(level, free)}px`;
      card.toggleAttribute("data-level", level >= free);
      turn.style.minBlockSize = `${Math.max(level, free) + card.offsetHeight}px`;
      return;
    }
    card.room = blockOf(card.citation);
    card.style.insetBlockStart = `${card.room.getBoundingClientRect().bottom + GAP - top}px`;
    card.room.style.marginBlockEnd = `${card.offsetHeight + 2 * GAP}px`;
  }

  const placeAll = () => document.querySelectorAll(".source-card").forEach(place);
  const sizes = new ResizeObserver(placeAll);
  document.addEventListener("source-card:open", (event) => sizes.observe(event.target));
  document.addEventListener("source-card:close", (event) => {
    sizes.unobserve(event.target);
    clear(event.target);
  });
  addEventListener("resize", placeAll);
  document.addEventListener("htmx:oobAfterSwap", () => requestAnimationFrame(placeAll));
})();
