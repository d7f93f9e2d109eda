// A question that has a page of its own is asked in place; without this the link simply leads to that page.
(() => {
  const dialog = document.getElementById("dialog");
  if (!dialog) return;

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-question]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      ask(link);
    } else if (event.target.closest("[data-close]") && dialog.open) {
      event.preventDefault();
      dialog.close();
    } else if (event.target === dialog) {
      dialog.close();
    }
  });

  async function ask(link) {
    const body = document.getElementById("dialog-body");
    body.replaceChildren();
    try {
      await htmx.ajax("GET", link.href, { target: body, select: "#question", swap: "innerHTML" });
    } catch (error) {
      console.warn("The question could not be fetched.", error);
    }
    if (!body.querySelector("#question")) {
      location.href = link.href;
      return;
    }
    dialog.showModal();
    body.querySelector("[data-close]")?.focus();
  }
})();
