// Opens the form of a link with data-dialog in a dialog, or a menu beside the link. Without scripts, that is a page.
(() => {
  const dialog = document.getElementById("dialog");
  if (!dialog) return;
  const body = document.getElementById("dialog-body");
  let isLoading = false;
  let hasFailed = false;

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-dialog]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      openDialog(link);
    } else if (event.target.closest("[data-close]") && dialog.open) {
      event.preventDefault();
      dialog.close();
    } else if (event.target === dialog && dialog.matches(".dialog--menu")) {
      dialog.close();
    }
  });

  // A menu opens below its link, or above it if there is no room.
  function place(link) {
    const { bottom, top, left, right } = link.getBoundingClientRect();
    const height = dialog.offsetHeight;
    const isRtl = getComputedStyle(link).direction === "rtl";
    dialog.style.setProperty("--menu-top", `${bottom + height > innerHeight ? Math.max(8, top - height) : bottom}px`);
    dialog.style.setProperty("--menu-start", `${isRtl ? innerWidth - left : right}px`);
  }

  // The arrow keys move through a menu.
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !dialog.matches(".dialog--menu")) return;
    const entries = [...dialog.querySelectorAll("a, button")];
    const at = entries.indexOf(document.activeElement);
    entries[(at + step + entries.length) % entries.length].focus();
    event.preventDefault();
  });

  document.addEventListener("htmx:afterRequest", ({ detail: { target, successful } }) => {
    if (target === body) hasFailed = !successful;
  });

  async function openDialog(link) {
    if (isLoading) return;
    isLoading = true;
    body.replaceChildren();
    try {
      await htmx.ajax("GET", link.href, { target: body, select: "#dialog-content", swap: "innerHTML" });
    } catch (error) {
      console.warn("The dialog could not be loaded.", error);
    }
    isLoading = false;
    // The page says why.
    if (hasFailed) {
      dialog.close();
      return;
    }
    if (!body.querySelector("#dialog-content")) {
      location.href = link.href;
      return;
    }
    dialog.classList.toggle("dialog--menu", link.dataset.dialog === "menu");
    if (!dialog.open) dialog.showModal();
    if (link.dataset.dialog === "menu") place(link);
    dialog.ariaLabel = (body.querySelector("h1")?.textContent ?? link.ariaLabel ?? link.textContent).trim();
    // What is written comes first, but nothing dangerous does.
    const field = !body.querySelector(".button--danger") && body.querySelector("input[type=text], textarea");
    (field || body.querySelector("[data-close]") || body.querySelector("a, button"))?.focus();
  }
})();
