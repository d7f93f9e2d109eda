// Says when a request has failed for which the server could not say why, and removes what is polled once it is gone.
(() => {
  document.addEventListener("htmx:beforeSwap", ({ detail }) => {
    const isPolled = detail.requestConfig.elt.getAttribute("hx-trigger")?.includes("every");
    if (isPolled && detail.xhr.status === 404) Object.assign(detail, { serverResponse: "", swapOverride: "delete" });
  });

  for (const name of ["htmx:responseError", "htmx:sendError"]) {
    document.addEventListener(name, ({ detail: { elt, xhr } }) => {
      const isExplained = xhr.status >= 400 && xhr.status < 500;
      // Forms that send texts or files say it themselves; what is polled will be asked for again.
      if (isExplained || elt.dataset.sendFailed || elt.getAttribute("hx-trigger")?.includes("every")) return;
      const toasts = document.getElementById("toasts");
      const toast = Object.assign(document.createElement("p"), { className: "toast" });
      toast.textContent = toasts.dataset.requestFailed;
      toasts.replaceChildren(toast);
    });
  }
})();
