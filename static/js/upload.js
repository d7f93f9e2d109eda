// Uploads files: checks their number and size before anything is sent, and shows a chip while they are sent.
(() => {
  const form = document.getElementById("upload-form");
  if (!form) return;
  const input = form.querySelector("input[type=file]");
  const imagesForm = document.getElementById("images-form");
  const maxFiles = Number(form.dataset.maxFiles);
  const maxBytes = Number(form.dataset.maxMb) * 1_000_000;
  // The form holds the sentences, with a star for the name or the number.
  const message = (name, value) => form.dataset[name].replace("*", () => value);

  function findError(files) {
    if (files.length > maxFiles) return message("tooMany", files.length);
    const large = files.find((file) => file.size > maxBytes);
    if (large) return message("tooLarge", large.name);
    const empty = files.find((file) => !file.size);
    return empty ? message("empty", empty.name) : "";
  }

  function addChip(text, isError) {
    const chip = document.createElement("p");
    chip.className = isError ? "chip chip--failed" : "chip chip--sending";
    chip.textContent = text;
    if (isError) chip.setAttribute("role", "alert");
    document.getElementById("chips").append(chip);
  }

  function removeSendingChips() {
    for (const chip of document.querySelectorAll(".chip--sending")) chip.remove();
  }

  function add(files) {
    if (!files.length) return;
    const error = findError(files);
    if (error) {
      addChip(error, true);
      input.value = "";
      return;
    }
    // In a thread, images belong to the message; all other files go to memory.
    const isImage = (file) => imagesForm && imagesForm.dataset.types.split(" ").includes(file.type);
    send(form, files.filter((file) => !isImage(file)));
    if (imagesForm) send(imagesForm, files.filter(isImage));
  }

  function send(target, files) {
    if (!files.length) return;
    const transfer = new DataTransfer();
    for (const file of files) transfer.items.add(file);
    target.querySelector("input[type=file]").files = transfer.files;
    target.requestSubmit();
  }

  input.addEventListener("change", () => add([...input.files]));
  form.addEventListener("files-added", (event) => add(event.detail));
  for (const target of [form, imagesForm].filter(Boolean)) {
    const targetInput = target.querySelector("input[type=file]");
    target.addEventListener("htmx:beforeRequest", () => {
      removeSendingChips();
      const names = [...targetInput.files].map((file) => file.name);
      addChip(names.length === 1 ? message("sending", names[0]) : message("sendingMany", names.length), false);
    });
    target.addEventListener("htmx:afterRequest", (event) => {
      removeSendingChips();
      targetInput.value = "";
      if (!event.detail.successful) addChip(form.dataset.sendFailed, true);
    });
  }

  // Other pages can have added files meanwhile. A list with selected rows is not reloaded.
  window.addEventListener("focus", () => {
    if (!document.querySelector("#documents :checked")) htmx.trigger(document.body, "documents-changed");
  });
  document.addEventListener("click", (event) => {
    event.target.closest("[data-dismiss]")?.closest(".chip")?.remove();
  });
})();
