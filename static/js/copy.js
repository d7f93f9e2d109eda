// Copies an answer, a block of code or a field, and says so for a moment where it was pressed.
(() => {
  const text = (button) => {
    if (button.dataset.copy === "answer") {
      const parts = button.closest(".turn").querySelectorAll(".blocks > .block > *");
      return [...parts].map((part) => (part.querySelector("pre") ?? part).innerText.trim()).join("\n\n");
    }
    if (button.dataset.copy === "card") return button.closest(".card").querySelector(".card-text").innerText;
    const code = button.closest(".code");
    return code ? code.querySelector("pre").innerText : document.getElementById(button.dataset.copy).value;
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy, button[data-copy]");
    if (!button) return;
    const toasts = document.getElementById("toasts");
    let said = toasts.dataset.copied;
    try {
      await navigator.clipboard.writeText(text(button));
    } catch (error) {
      // The clipboard is there only on https or this machine, and may be refused.
      console.warn("Copying was refused.", error);
      said = toasts.dataset.uncopied;
    }
    const toast = document.createElement("p");
    toast.className = "toast";
    toast.textContent = said;
    toasts.replaceChildren(toast);
  });
})();
