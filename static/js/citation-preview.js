// Shows the source of a citation beside it, while the pointer is on either or the citation has the focus.
(() => {
  const DELAY = 200; // milliseconds
  const LINGER = 120;
  const GAP = 8; // pixels
  const preview = document.getElementById("citation-preview");
  if (!preview || matchMedia("(hover: none)").matches) return;
  const part = (name) => preview.querySelector(`.citation-preview__${name}`);
  let citation = null;
  let timer = 0;

  function show(target) {
    const item = document.getElementById(target.hash.slice(1));
    if (!item || !target.isConnected || target.getAttribute("aria-expanded") === "true") return;
    hide();
    citation = target;
    citation.setAttribute("aria-describedby", preview.id);
    part("number").textContent = citation.dataset.source;
    part("text").textContent = (item.querySelector(".recall-item__excerpt") ?? item.lastElementChild).textContent;
    part("source").textContent = item.querySelector(".recall-item__source")?.textContent.replace(/\s+/g, " ") ?? "";
    preview.hidden = false;
    const line = citation.getBoundingClientRect();
    const sheet = citation.closest(".thread").getBoundingClientRect();
    const start = Math.max(sheet.left + GAP, Math.min(line.left - 2 * GAP, sheet.right - preview.offsetWidth - GAP));
    const end = document.getElementById("composer").getBoundingClientRect().top;
    const isBelow = line.bottom + GAP + preview.offsetHeight < end || line.top < preview.offsetHeight + GAP;
    const top = isBelow ? line.bottom + GAP : line.top - GAP - preview.offsetHeight;
    preview.style.left = `${start + scrollX}px`;
    preview.style.top = `${top + scrollY}px`;
  }

  function hide() {
    clearTimeout(timer);
    citation?.removeAttribute("aria-describedby");
    citation = null;
    preview.hidden = true;
  }

  function after(delay, act) {
    clearTimeout(timer);
    timer = setTimeout(act, delay);
  }

  const target = (event) => event.target.closest?.("a.citation[data-source]");
  document.addEventListener("pointerover", (event) => {
    const over = target(event);
    if (over === citation && citation) clearTimeout(timer);
    else if (over) after(DELAY, () => show(over));
    else if (event.target.closest("#citation-preview")) clearTimeout(timer);
    else if (!citation?.matches(":focus-visible")) after(LINGER, hide);
  });
  document.addEventListener("focusin", (event) => {
    if (target(event)?.matches(":focus-visible")) after(DELAY, () => show(target(event)));
    else if (citation) after(LINGER, hide);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !citation) return;
    event.preventDefault();
    hide();
  });
  for (const name of ["source-card:open", "source-card:close", "click"]) document.addEventListener(name, hide);
  addEventListener("scroll", hide, { passive: true });
})();
