// Opens the source of a citation in place: its item moves from a closed panel into a card, or opens in an open panel.
(() => {
  const template = document.getElementById("source-card");
  if (!template) return;
  const homes = new WeakMap();
  const passageOf = (item) => item?.querySelector("details");
  const citationsOf = (turn) => [...turn.querySelectorAll("a.citation[data-source]")];
  const fill = (text, facts) => text.replace(/\{(\w+)\}/g, (_all, name) => facts[name]);

  function close(card, returnFocus) {
    const item = card.querySelector(".recall-item");
    if (passageOf(item)) passageOf(item).open = false;
    homes.get(item).append(item);
    card.citation.setAttribute("aria-expanded", "false");
    card.dispatchEvent(new Event("source-card:close", { bubbles: true }));
    card.remove();
    if (returnFocus) card.citation.focus({ preventScroll: true });
  }

  function fillCard(citation, item) {
    const card = template.content.firstElementChild.cloneNode(true);
    const turn = citation.closest(".turn");
    const numbers = [...new Set(citationsOf(turn).map((other) => other.dataset.source))];
    const facts = { number: numbers.indexOf(citation.dataset.source) + 1, total: numbers.length };
    card.citation = citation;
    card.place = citationsOf(turn).indexOf(citation);
    card.ariaLabel = card.querySelector(".source-card__title").textContent = citation.ariaLabel;
    card.querySelector(".source-card__count").textContent = fill(template.dataset.count, facts);
    homes.set(item, item.parentElement);
    card.append(item);
    turn.append(card);
    if (matchMedia("(max-width: 49.999rem)").matches) {
      card.showModal();
      import(template.dataset.sheet);
    } else card.setAttribute("open", "");
    return card;
  }

  function open(citation, item, hasKeyboard) {
    const panel = item.closest(".recall__panel");
    citation.setAttribute("aria-expanded", "true");
    const region = document.getElementById("live-region");
    region.textContent = fill(template.dataset.opened, { number: citation.dataset.source });
    if (passageOf(item)) passageOf(item).open = true;
    htmx.trigger(item.closest("[hx-get]"), "opened");
    if (panel.open) {
      const others = item.closest(".recall__more");
      if (others) others.open = true;
      if (hasKeyboard) item.querySelector("summary")?.focus();
      return;
    }
    const card = fillCard(citation, item);
    card.dispatchEvent(new Event("source-card:open", { bubbles: true }));
    if (hasKeyboard) card.focus({ preventScroll: true });
  }

  document.addEventListener("click", (event) => {
    const card = event.target.closest(".source-card");
    if (card && (event.target === card || event.target.closest(".source-card__close"))) close(card, true);
    const citation = event.target.closest("a.citation[data-source]");
    if (!citation || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const wasExpanded = citation.getAttribute("aria-expanded") === "true";
    const current = citation.closest(".turn").querySelector(":scope > .source-card");
    if (current) close(current, wasExpanded);
    const item = document.getElementById(citation.hash.slice(1));
    if (wasExpanded && passageOf(item)) passageOf(item).open = false;
    else if (item && !wasExpanded) open(citation, item, event.detail === 0);
  });

  document.addEventListener("source-card:dismiss", (event) => close(event.target, false));
})();
