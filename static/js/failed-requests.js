// Says when a request has failed and the server could not say why, and removes what is polled once it is gone.
(() => {
  const isPolled = (element) => element.getAttribute("hx-trigger")?.includes("every");

  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    if (detail.xhr.status !== 404 || !isPolled(detail.requestConfig.elt)) return;
    Object.assign(detail, { serverResponse: "", swapOverride: "delete" });
  });

  for (const name of ["htmx:responseError", "htmx:sendError"]) {
    document.addEventListener(name, ({ detail: { elt, xhr } }) => {
      const isExplained = xhr.status >= 400 && xhr.status < 500;
      // Forms that send texts or files say it themselves; what is polled is asked for again.
      if (isExplained || elt.dataset.sendFailed || isPolled(elt)) return;
      const toasts = document.getElementById("toasts");
      const toast = Object.assign(document.createElement("p"), { className: "toast" });
      toast.textContent = toasts.dataset.requestFailed;
      toasts.replaceChildren(toast);
    });
  }
})();
