// Prints the page with new recovery codes.
document.querySelector("[data-print]").addEventListener("click", () => print());
