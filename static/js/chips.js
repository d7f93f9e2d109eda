// Removes a chip with its button.
document.addEventListener("click", (event) => {
  event.target.closest("[data-dismiss]")?.closest(".chip")?.remove();
});
