// Adds Copy and Expand below each complete table of an answer that scrolls. A long table consists of several blocks.
(() => {
  const template = document.getElementById("table-controls");
  const regionIn = (block) => block?.querySelector(":scope > .answer__table[role]");
  const controlsIn = (block) => block?.querySelector(":scope > .answer__table-controls");

  function partsOf(block) {
    const parts = [block];
    while (parts[0].matches(".answer__block--continued")) parts.unshift(parts[0].previousElementSibling);
    return parts.map(regionIn).filter(Boolean);
  }
  const isExpanded = (block) => block.querySelector(".answer__table-controls [aria-expanded=true]");
  // The size of a region is known without another layout when this is called.
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const block = target.parentElement;
      const controls = controlsIn(block);
      const isScrolling = () => partsOf(block).some((part) => part.scrollWidth > part.clientWidth);
      if (controls) controls.hidden = !isExpanded(block) && !isScrolling();
    }
  });

  function expand(block, isWide) {
    const turn = block.closest(".turn");
    const parts = partsOf(block);
    const button = block.querySelector(".answer__table-controls [aria-expanded]");
    if (isWide) {
      turn.querySelector(":scope > .source-card .source-card__close")?.click();
      button.focus({ preventScroll: true }); // closing the card moved the focus
      for (const panel of turn.querySelectorAll(".recall__panel[open]")) panel.open = false;
    }
    for (const part of parts) part.classList.toggle("answer__table--expanded", isWide);
    // The summary line of the margin is never covered.
    const top = parts[0].getBoundingClientRect().top;
    const covered = isWide ? (turn.querySelector(":scope > .recall")?.getBoundingClientRect().bottom ?? 0) - top : 0;
    parts[0].style.marginBlockStart = covered > 0 ? `${covered + 24}px` : "";
    button.setAttribute("aria-expanded", isWide);
  }

  function copy(block) {
    const table = document.createElement("table");
    for (const [index, part] of partsOf(block).entries()) {
      const rows = [...part.querySelectorAll("tr")].filter((row) => !index || !row.closest("thead"));
      table.append(...rows.map((row) => row.cloneNode(true)));
    }
    // Beside a figure, the number of a source would be read as one of its digits.
    for (const citation of table.querySelectorAll(".citation")) citation.remove();
    const cellText = (cell) => cell.textContent.replace(/\s+/g, " ").trim();
    const lines = [...table.rows].map((row) => [...row.cells].map(cellText).join("\t"));
    const blob = (type, text) => ({ [type]: new Blob([text], { type }) });
    const formats = { ...blob("text/html", table.outerHTML), ...blob("text/plain", lines.join("\n")) };
    return navigator.clipboard.write([new ClipboardItem(formats)]);
  }

  function add(block) {
    const region = block.matches?.(".answer__blocks > .answer__block") && regionIn(block);
    if (!region) return;
    if (block.matches(".answer__block--continued")) controlsIn(block.previousElementSibling)?.remove();
    if (controlsIn(block) || block.nextElementSibling?.matches(".answer__block--continued")) return;
    const controls = template.content.firstElementChild.cloneNode(true);
    controls.querySelector("[data-copy]").write = () => copy(block);
    block.append(controls);
    sizes.observe(region);
  }

  const addAll = (root) => [root, ...root.querySelectorAll(".answer__block")].forEach(add);
  const collapse = ({ target }) => {
    if (!target.matches(".source-card, .recall__panel[open]")) return;
    const blocks = target.closest(".turn")?.querySelectorAll(".answer__block") ?? [];
    for (const block of [...blocks].filter(isExpanded)) expand(block, false);
  };
  addAll(document);
  document.addEventListener("htmx:load", ({ target }) => addAll(target));
  document.addEventListener("source-card:open", collapse);
  document.addEventListener("toggle", collapse, true);
  document.addEventListener("click", ({ target }) => {
    const button = target.closest(".answer__table-controls [aria-expanded]");
    if (button) expand(button.closest(".answer__block"), button.getAttribute("aria-expanded") === "false");
  });
})();
