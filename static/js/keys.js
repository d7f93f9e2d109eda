// Ctrl K, or Command K, opens the search from anywhere.
document.addEventListener("keydown", (event) => {
  const isCombined = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey;
  if (event.key.toLowerCase() !== "k" || !isCombined) return;
  const find = document.querySelector("[data-find]");
  if (!find) return;
  event.preventDefault();
  const field = document.getElementById("query");
  if (field) field.select();
  else location.href = find.href;
});
