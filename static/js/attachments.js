// Uploads files as attachments of the next message, and shows a chip with the progress of each.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const input = document.getElementById("files");
  const list = document.getElementById("chips");
  // The form holds the sentences, with a star for the name or number.
  const message = (sentence, name) => form.dataset[sentence].replace("*", () => name);

  function announce(text) {
    document.getElementById("attachment-status").textContent = text;
    form.dispatchEvent(new CustomEvent("attachments-changed"));
  }

  // Rejected files are shown first.
  function reject(chip, reason) {
    chip.className = "chip chip--failed";
    chip.querySelector("use").setAttribute("href", "#i-alert");
    chip.querySelector("progress").remove();
    chip.querySelector(".chip__detail").textContent = reason;
    list.prepend(chip);
    announce(chip.textContent.trim());
  }

  function showStored(chip, html) {
    const name = chip.querySelector(".chip__name").textContent;
    const position = [...list.children].indexOf(chip);
    htmx.swap(chip, html, { swapStyle: "outerHTML", swapDelay: 0 });
    const stored = list.children[position];
    const isRejected = stored.matches(".chip--failed");
    if (isRejected) list.prepend(stored);
    announce(isRejected ? stored.textContent.trim() : message("attached", name));
  }

  function upload(file) {
    const chip = document.getElementById("uploading-chip").content.firstElementChild.cloneNode(true);
    const name = chip.querySelector(".chip__name");
    name.firstChild.textContent = file.name;
    name.dataset.start = file.name.slice(0, -9);
    name.dataset.end = file.name.slice(-9);
    list.append(chip);
    if (file.size > Number(form.dataset.maxMb) * 1_000_000) {
      reject(chip, message("tooLarge", Math.ceil(file.size / 1_000_000)));
      return;
    }
    const request = new XMLHttpRequest();
    const data = new FormData();
    data.append("csrfmiddlewaretoken", form.elements.csrfmiddlewaretoken.value);
    data.append("attachments", file);
    request.upload.addEventListener("progress", ({ loaded, total }) => {
      const percent = Math.floor((100 * loaded) / total);
      chip.querySelector("progress").value = percent;
      chip.querySelector(".chip__detail").textContent = `${percent} %`;
    });
    request.addEventListener("load", () => {
      if (request.status === 200) showStored(chip, request.responseText);
      else reject(chip, form.dataset.uploadFailed);
    });
    request.addEventListener("error", () => reject(chip, form.dataset.uploadFailed));
    chip.addEventListener("attachment-removed", () => request.abort());
    request.open("POST", form.dataset.attachUrl);
    // Without a login, the response is then an error instead of the sign-in page.
    request.setRequestHeader("HX-Request", "true");
    request.send(data);
  }

  input.addEventListener("change", () => {
    const files = [...input.files];
    input.value = "";
    files.forEach(upload);
  });
  form.addEventListener("files-added", (event) => event.detail.forEach(upload));
})();
