// Files come by drop, by paste or from the dialog; what cannot be taken is said before anything is sent.
(() => {
  const form = document.getElementById("upload");
  if (!form) return;
  const field = form.querySelector("input[type=file]");
  const pictures = document.getElementById("pictures");
  const mostFiles = Number(form.dataset.mostFiles);
  const mostBytes = Number(form.dataset.mostMb) * 1_000_000;
  const chips = () => document.getElementById("chips");
  // The form says the sentences; a star stands where a name or a number goes.
  const words = (sentence, fact) => form.dataset[sentence].replace("*", () => fact);

  function refusal(files) {
    if (files.length > mostFiles) return words("tooMany", files.length);
    const large = files.find((file) => file.size > mostBytes);
    if (large) return words("tooLarge", large.name);
    const empty = files.find((file) => !file.size);
    return empty ? words("empty", empty.name) : "";
  }

  function say(text, isError) {
    const chip = document.createElement("p");
    chip.className = isError ? "chip is-refused" : "chip is-sending";
    chip.textContent = text;
    if (isError) chip.setAttribute("role", "alert");
    chips().append(chip);
    return chip;
  }

  function add(files) {
    const given = [...files];
    if (!given.length) return;
    const reason = refusal(given);
    if (reason) {
      say(reason, true);
      field.value = "";
      return;
    }
    // Pictures go with the message, everything else into memory.
    const isPicture = (file) => pictures && pictures.dataset.types.split(" ").includes(file.type);
    send(form, given.filter((file) => !isPicture(file)));
    if (pictures) send(pictures, given.filter(isPicture));
  }

  function send(through, files) {
    if (!files.length) return;
    const moved = new DataTransfer();
    for (const file of files) moved.items.add(file);
    through.querySelector("input[type=file]").files = moved.files;
    through.requestSubmit();
  }

  field.addEventListener("change", () => add(field.files));
  for (const through of [form, pictures]) {
    if (!through) continue;
    const given = through.querySelector("input[type=file]");
    through.addEventListener("htmx:beforeRequest", () => {
      for (const chip of document.querySelectorAll(".chip.is-sending")) chip.remove();
      const names = [...given.files].map((file) => file.name);
      say(names.length === 1 ? words("sending", names[0]) : words("sendingMany", names.length), false);
    });
    through.addEventListener("htmx:afterRequest", (event) => {
      for (const chip of document.querySelectorAll(".chip.is-sending")) chip.remove();
      given.value = "";
      if (!event.detail.successful) say(form.dataset.unsent, true);
    });
  }

  const carries = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0;
  document.addEventListener("dragenter", (event) => {
    if (carries(event)) document.body.classList.toggle("is-dropping", ++depth > 0);
  });
  document.addEventListener("dragleave", (event) => {
    if (carries(event)) document.body.classList.toggle("is-dropping", --depth > 0);
  });
  document.addEventListener("dragover", (event) => carries(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!carries(event)) return;
    event.preventDefault();
    depth = 0;
    document.body.classList.remove("is-dropping");
    add(event.dataTransfer.files);
  });
  document.addEventListener("paste", (event) => {
    const files = event.clipboardData?.files;
    if (!files?.length) return;
    event.preventDefault();
    add(files);
  });
  // Other pages may have added files meanwhile; what is ticked here is not lost for it.
  window.addEventListener("focus", () => {
    if (!document.querySelector("#documents :checked")) htmx.trigger(document.body, "documents-changed");
  });
  document.addEventListener("click", (event) => {
    event.target.closest("[data-dismiss]")?.closest(".chip")?.remove();
  });
})();
