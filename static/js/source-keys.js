// Keys of citations, source cards and recall panels. Letters act only while the focus is in an item.
(() => {
  const citationsOf = (turn) => [...turn.querySelectorAll("a.citation[data-source]")];

  // The previous or next source of the answer, in the order of the first citations.
  function step(card, by) {
    const citations = citationsOf(card.closest(".turn"));
    const numbers = [...new Set(citations.map((citation) => citation.dataset.source))];
    const number = numbers.at((numbers.indexOf(card.citation.dataset.source) + by) % numbers.length);
    const next = citations.find((citation) => citation.dataset.source === number);
    if (number !== card.citation.dataset.source) next.click();
  }

  function moveInPanel(item, key) {
    const panel = item.closest(".recall__panel, .page");
    const summaries = [...panel.querySelectorAll(".recall-item > :first-child > summary")];
    const all = summaries.filter((summary) => summary.checkVisibility());
    const at = all.indexOf(item.querySelector("summary"));
    const next = { ArrowDown: all[at + 1], ArrowUp: all[at - 1], Home: all[0], End: all.at(-1) }[key];
    next?.focus();
    return Boolean(next);
  }

  function leave(item) {
    const passage = item.querySelector("details");
    const citation = document.querySelector(`a.citation[href="#${item.id}"][aria-expanded="true"]`);
    const panel = item.closest(".recall__panel");
    if (passage?.open) {
      passage.open = false;
      (citation ?? passage.querySelector("summary")).focus({ preventScroll: true });
    } else if (panel) {
      panel.open = false;
      panel.querySelector("summary").focus({ preventScroll: true });
    }
    return true;
  }

  function act(event) {
    const card = event.target.closest(".source-card");
    const item = event.target.closest(".recall-item") ?? card?.querySelector(".recall-item");
    const isInline = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.target.matches("a.citation") && event.key === " ") return event.target.click() ?? true;
    if (card && isInline) return step(card, document.dir === "rtl" ? -isInline : isInline) ?? true;
    if (event.key === "Escape") return item && !card ? leave(item) : closeLast();
    if (!item) return false;
    const button = /^[a-z]$/.test(event.key) && item.querySelector(`[aria-keyshortcuts="${event.key}"]`);
    if (button) return button.click() ?? true;
    return !card && event.target.matches(".recall-item > :first-child > summary") && moveInPanel(item, event.key);
  }

  function closeLast() {
    const card = [...document.querySelectorAll(".source-card")].pop();
    card?.querySelector(".source-card__close").click();
    return Boolean(card);
  }

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, dialog:not(.source-card)");
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!event.target.closest || (isTyping && event.key !== "Escape")) return;
    if (document.querySelector("dialog[open]:not(.source-card)")) return;
    if (act(event)) event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest(".source-card__count")) step(event.target.closest(".source-card"), 1);
  });
})();
