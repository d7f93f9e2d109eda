// Keeps a message back while its files are uploaded, and then sends it. Escape withdraws it.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const status = document.getElementById("attachment-waiting");
  let send = null;

  const uploading = () => [...document.querySelectorAll("#chips .chip--sending .chip__name")];

  function update() {
    const names = uploading().map((name) => name.textContent);
    status.textContent = send && names.length ? form.dataset.waiting.replace("*", () => names.join(", ")) : "";
    if (!send || names.length) return;
    const issueRequest = send;
    send = null;
    issueRequest(true);
  }

  form.addEventListener("attachments-changed", update);
  form.addEventListener("htmx:confirm", (event) => {
    if (event.target !== form || !uploading().length) return;
    event.preventDefault();
    send = event.detail.issueRequest;
    update();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !send) return;
    event.preventDefault();
    send = null;
    update();
  });
})();
