// Keys of the search page: the arrows select a hit, Escape leads back to the search box, and / to the filters; o opens
// the hit, and c asks about it in a new thread. A hit that was opened has the focus again after Back.
(() => {
  const query = document.getElementById("query");
  const links = () => [...document.querySelectorAll(".search-hit__title a")];
  const select = (link) => {
    link?.focus({ preventScroll: true });
    link?.scrollIntoView({ block: "nearest" });
  };

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = links();
    const at = all.indexOf(document.activeElement);
    const isTyping = event.target.matches("input, select, textarea") && event.target !== query;
    if (isTyping || document.querySelector("dialog[open]")) return;
    if (event.key === "ArrowDown" && at + 1 < all.length) select(all[at + 1]);
    else if (event.key === "ArrowUp" && at > 0) select(all[at - 1]);
    else if (event.key === "ArrowUp" && at === 0) query.focus();
    else if (event.key === "Escape" && at >= 0) query.focus();
    else if (event.key === "o" && at >= 0) all[at].click();
    else if (event.key === "c" && at >= 0) all[at].closest(".search-hit").querySelector(".search-hit__ask").click();
    else if (event.key === "/" && event.target !== query && document.documentElement.dataset.singleKeys !== "off") {
      document.querySelector("#search-filters select").focus();
    } else return;
    event.preventDefault();
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest(".search-hit__title a");
    if (link) history.replaceState(history.state, "", `#${link.id}`);
  });
  const opened = location.hash.startsWith("#hit-") && document.getElementById(location.hash.slice(1));
  if (opened) select(opened);
})();
