// Opens the form of a link with data-dialog in a dialog. Without scripts the link leads to the form's own page.
(() => {
  const dialog = document.getElementById("dialog");
  if (!dialog) return;

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-dialog]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      openDialog(link);
    } else if (event.target.closest("[data-close]") && dialog.open) {
      event.preventDefault();
      dialog.close();
    } else if (event.target === dialog) {
      dialog.close();
    }
  });

  async function openDialog(link) {
    const body = document.getElementById("dialog-body");
    body.replaceChildren();
    try {
      await htmx.ajax("GET", link.href, { target: body, select: "#dialog-content", swap: "innerHTML" });
    } catch (error) {
      console.warn("The dialog could not be loaded.", error);
    }
    if (!body.querySelector("#dialog-content")) {
      location.href = link.href;
      return;
    }
    dialog.showModal();
    body.querySelector("[data-close]")?.focus();
  }
})();
