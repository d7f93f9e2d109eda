// Keeps source cards and citations consistent with what else happens: panels that open, passages that close, frames.
(() => {
  const CITATIONS = "a.citation[data-source]";
  const openAgain = (citation) =>
    citation?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, detail: 1 }));
  const dismiss = (card) => card.dispatchEvent(new Event("source-card:dismiss", { bubbles: true }));

  document.addEventListener("toggle", ({ target }) => {
    const card = target.matches(".recall__panel") && target.closest(".turn")?.querySelector(":scope > .source-card");
    if (card && target.open) {
      const { citation } = card;
      dismiss(card);
      openAgain(citation);
    } else if (target.matches(".recall-item > :first-child") && !target.open) {
      const own = target.closest(".source-card");
      if (own) return own.querySelector(".source-card__close").click();
      for (const citation of document.querySelectorAll(`a.citation[href="#${target.parentElement.id}"]`)) {
        citation.setAttribute("aria-expanded", "false");
      }
    }
  }, true);

  // A citation in a paragraph that still grows is replaced with it; its card then belongs to the new one.
  document.addEventListener("htmx:oobAfterSwap", () => requestAnimationFrame(() => {
    for (const card of document.querySelectorAll(".source-card")) {
      if (card.citation.isConnected) continue;
      const citation = card.parentElement.querySelectorAll(CITATIONS)[card.place];
      if (citation?.hash !== card.citation.hash) {
        dismiss(card);
        continue;
      }
      card.citation = citation;
      citation.setAttribute("aria-expanded", "true");
    }
  }));

  // With a new version of the turn or its panel, the same source is opened again; a replaced citation stays as it was.
  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const link = detail.target.matches(CITATIONS) && detail.fragment.firstElementChild;
    if (link) link.ariaExpanded = detail.target.ariaExpanded;
    const turn = detail.target.matches(".turn, .turn > .recall") && detail.target.closest(".turn");
    const card = turn && turn.querySelector(":scope > .source-card");
    if (!card) return;
    const { place } = card;
    dismiss(card);
    requestAnimationFrame(() => openAgain(document.getElementById(turn.id)?.querySelectorAll(CITATIONS)[place]));
  });

  document.addEventListener("cancel", (event) => {
    if (!event.target.matches(".source-card")) return;
    event.preventDefault();
    event.target.querySelector(".source-card__close").click();
  }, true);

  addEventListener("beforeprint", () => document.querySelectorAll(".source-card").forEach(dismiss));
})();
