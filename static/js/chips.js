// Removes a chip with its button, and moves the focus to a button beside it, or else to the file field.
document.addEventListener("click", (event) => {
  const chip = event.target.closest("[data-dismiss]")?.closest(".chip");
  if (!chip) return;
  const beside = chip.nextElementSibling ?? chip.previousElementSibling;
  chip.remove();
  (beside?.querySelector("[data-dismiss]") ?? document.getElementById("files"))?.focus();
});
