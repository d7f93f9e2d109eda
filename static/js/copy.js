// Copies an answer, a table, code, a command's result, a receipt, a field or a link, and confirms it with a toast.
(() => {
  const textToCopy = (button) => {
    if (button.dataset.copy === "answer") {
      const answer = button.closest(".turn").querySelector(".answer__blocks");
      const headers = answer.querySelectorAll(".code-block__header");
      const parts = answer.querySelectorAll(":scope > .answer__block > :not(.answer__table-controls)");
      // The text of an element does not contain what is hidden.
      for (const header of headers) header.hidden = true;
      const text = [...parts].map((part) => part.innerText.trim()).join("\n\n");
      for (const header of headers) header.hidden = false;
      return text;
    }
    if (button.dataset.copy === "link") return button.href;
    if (button.dataset.copy === "receipt") {
      const lines = button.closest(".receipt").querySelectorAll("h2, .key-values > div, :scope > p:not(.link-row)");
      return [...lines].map((line) => line.innerText.replace(/\s+/g, " ").trim()).join("\n");
    }
    if (button.dataset.copy === "card") return button.closest(".card").querySelector(".card__text").innerText;
    const code = button.closest(".code-block");
    return code ? code.querySelector("pre").innerText : document.getElementById(button.dataset.copy).value;
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.code-block__copy, [data-copy]");
    if (!button) return;
    // Where nothing can be copied, a link is followed, and the browser shows its address.
    if (button.dataset.copy === "link" && !navigator.clipboard) return;
    event.preventDefault();
    const toasts = document.getElementById("toasts");
    let message = toasts.dataset.copied;
    try {
      await (button.write?.() ?? navigator.clipboard.writeText(textToCopy(button)));
    } catch (error) {
      // The clipboard needs https or localhost, and the browser can refuse it.
      console.warn("Copying failed.", error);
      message = toasts.dataset.copyFailed;
    }
    const toast = document.createElement("p");
    toast.className = "toast";
    toast.textContent = message;
    toasts.replaceChildren(toast);
  });
})();
