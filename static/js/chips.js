// Removes a chip with its button, and moves the focus to a button beside it, or else to the file field. A document
// that is added again has one chip.
document.addEventListener("click", (event) => {
  const chip = event.target.closest("[data-dismiss]")?.closest(".chip");
  if (!chip) return;
  const beside = chip.nextElementSibling ?? chip.previousElementSibling;
  chip.remove();
  (beside?.querySelector("[data-dismiss]") ?? document.getElementById("files"))?.focus();
});

document.addEventListener("htmx:afterSwap", () => {
  const chips = new Map();
  for (const chip of document.querySelectorAll("#chips > [id]")) {
    chips.get(chip.id)?.remove();
    chips.set(chip.id, chip);
  }
});
