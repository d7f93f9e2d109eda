// Uploads files: checks their number and size before anything is sent, and shows a chip while they are sent.
(() => {
  const form = document.getElementById("upload-form");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const maxFiles = Number(form.dataset.maxFiles);
  // Files that are added during an upload are sent after it.
  const waiting = [];
  const maxBytes = Number(form.dataset.maxMb) * 1_000_000;
  // The form holds the sentences, with a star for the name or the number.
  const message = (name, value) => form.dataset[name].replace("*", () => value);

  function findError(file) {
    if (file.size > maxBytes) return message("tooLarge", file.name);
    return file.size ? "" : message("empty", file.name);
  }

  function addSendingChip(text) {
    const chip = document.createElement("p");
    chip.className = "chip chip--sending";
    chip.textContent = text;
    document.getElementById("chips").append(chip);
  }

  function refuse(reason) {
    const chip = document.getElementById("refused-chip").content.cloneNode(true);
    chip.querySelector("span").textContent = reason;
    document.getElementById("chips").append(chip);
  }

  function removeSendingChips() {
    for (const chip of document.querySelectorAll(".chip--sending")) chip.remove();
  }

  function add(files) {
    const tooMany = files.length > maxFiles && message("tooMany", files.length);
    const errors = tooMany ? [tooMany] : files.map(findError).filter(Boolean);
    for (const error of errors) refuse(error);
    const accepted = tooMany ? [] : files.filter((file) => !findError(file));
    if (!accepted.length) {
      input.value = "";
      return;
    }
    waiting.push(accepted);
    if (waiting.length === 1) sendFirst();
  }

  function sendFirst() {
    const transfer = new DataTransfer();
    for (const file of waiting[0]) transfer.items.add(file);
    input.files = transfer.files;
    form.requestSubmit();
  }

  input.addEventListener("change", () => add([...input.files]));
  form.addEventListener("files-added", (event) => add(event.detail));
  form.addEventListener("htmx:beforeRequest", () => {
    removeSendingChips();
    const names = [...input.files].map((file) => file.name);
    addSendingChip(names.length === 1 ? message("sending", names[0]) : message("sendingMany", names.length));
  });
  form.addEventListener("htmx:afterRequest", (event) => {
    removeSendingChips();
    input.value = "";
    waiting.shift();
    if (waiting.length) sendFirst();
    if (!event.detail.successful) refuse(form.dataset.sendFailed);
  });

  // Other pages can have added files meanwhile. A list with selected rows is not reloaded.
  window.addEventListener("focus", () => {
    if (!document.querySelector("#documents :checked")) htmx.trigger(document.body, "documents-changed");
  });
})();
