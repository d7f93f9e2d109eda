// Fills the note with a page that was saved from the browser or shared to the app: its title, address and text.
(() => {
  // Returns what the sign-in page kept, and removes it.
  const takeKept = () => {
    try {
      const hash = sessionStorage.getItem("page to save") ?? "";
      sessionStorage.removeItem("page to save");
      return hash;
    } catch {
      return "";
    }
  };
  const kept = takeKept();
  const note = document.getElementById("text");
  // The bookmarklet puts the page behind the #, which no server receives; apps share in the query.
  const page = new URLSearchParams((location.hash || kept).slice(1) || location.search);
  const [title, url, text] = ["title", "url", "text"].map((name) => page.get(name)?.trim());
  if (!note || note.value || !(title || url || text)) return;
  note.value = [[title, url].filter(Boolean).join("\n"), text].filter(Boolean).join("\n\n");
  note.setSelectionRange(0, 0);
  note.focus();
  history.replaceState(null, "", location.pathname);
})();
