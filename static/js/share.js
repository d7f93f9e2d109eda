// Offers links to other apps, where the browser can do that.
(() => {
  if (!navigator.share) return;
  const show = (root) => {
    for (const link of root.querySelectorAll("a[data-share]")) link.hidden = false;
  };

  show(document);
  document.addEventListener("htmx:load", (event) => show(event.target));
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-share]");
    if (!link) return;
    event.preventDefault();
    try {
      await navigator.share({ title: document.title, url: link.href });
    } catch (error) {
      // Closing the list of apps is no failure.
      if (error.name !== "AbortError") console.warn("Sharing failed.", error);
    }
  });
})();
