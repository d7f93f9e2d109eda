// Uploads files as attachments of the next message, and shows a chip with the progress of each.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const input = document.getElementById("files");
  const list = document.getElementById("chips");
  // The form holds the sentences, with a star for the name.
  const message = (sentence, name) => form.dataset[sentence].replace("*", () => name);

  function announce(text) {
    document.getElementById("attachment-status").textContent = text;
    form.dispatchEvent(new CustomEvent("attachments-changed"));
  }

  function reject(chip, text) {
    chip.className = "chip chip--failed";
    chip.querySelector(".chip__name").textContent = text;
    for (const part of chip.querySelectorAll("progress, .chip__progress")) part.remove();
    list.prepend(chip);
    announce(text);
  }

  function upload(file) {
    const chip = document.getElementById("uploading-chip").content.firstElementChild.cloneNode(true);
    chip.querySelector(".chip__name").textContent = file.name;
    list.append(chip);
    if (file.size > Number(form.dataset.maxMb) * 1_000_000) {
      reject(chip, message("tooLarge", file.name));
      return;
    }
    const request = new XMLHttpRequest();
    const data = new FormData();
    data.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    data.append("attachments", file);
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      const percent = Math.floor((100 * loaded) / total);
      chip.querySelector("progress").value = percent;
      chip.querySelector(".chip__progress").textContent = `${percent} %`;
    });
    request.addEventListener("load", () => {
      if (request.status !== 200) {
        reject(chip, message("uploadFailed", file.name));
        return;
      }
      htmx.swap(chip, request.responseText, { swapStyle: "outerHTML", swapDelay: 0 });
      announce(message("attached", file.name));
    });
    request.addEventListener("error", () => reject(chip, message("uploadFailed", file.name)));
    chip.addEventListener("attachment-removed", () => request.abort());
    request.open("POST", form.dataset.attachUrl);
    request.send(data);
  }

  input.addEventListener("change", () => {
    const files = [...input.files];
    input.value = "";
    files.forEach(upload);
  });
  form.addEventListener("files-added", (event) => event.detail.forEach(upload));
})();
