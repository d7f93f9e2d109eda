// Removes an attachment with its button, or the last one with Backspace in an empty box, and announces it.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const list = document.getElementById("chips");
  const textarea = () => document.getElementById("message");

  function remove(chip) {
    const name = (chip.querySelector(".chip__name") ?? chip).textContent.trim();
    chip.dispatchEvent(new CustomEvent("attachment-removed"));
    chip.remove();
    document.getElementById("attachment-status").textContent = form.dataset.removed.replace("*", () => name);
    form.dispatchEvent(new CustomEvent("attachments-changed"));
    textarea().focus();
  }

  list.addEventListener("click", (event) => {
    if (event.target.closest("[data-dismiss]")) remove(event.target.closest(".chip"));
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Backspace" || event.repeat || event.target !== textarea() || textarea().value) return;
    if (list.lastElementChild) remove(list.lastElementChild);
  });
})();
