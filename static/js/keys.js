// Ctrl K, or Command K, opens the search from anywhere.
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
  const find = document.querySelector("[data-find]");
  if (!find) return;
  event.preventDefault();
  const field = document.getElementById("query");
  if (field) field.select();
  else location.href = find.href;
});
