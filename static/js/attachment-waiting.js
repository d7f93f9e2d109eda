// Keeps a message back while its files are uploaded, and then sends it. Escape and a rejected file withdraw it.
(() => {
  const form = document.getElementById("composer");
  if (!form) return;
  const status = document.getElementById("attachment-waiting");
  let send = null;
  let failed = 0;

  const chips = (state) => [...document.querySelectorAll(`#chips .chip--${state}`)];

  function update() {
    if (chips("failed").length > failed) send = null;
    const names = chips("sending").map((chip) => chip.querySelector(".chip__name").textContent);
    status.textContent = send && names.length ? form.dataset.waiting.replace("*", () => names.join(", ")) : "";
    if (!send || names.length) return;
    const issueRequest = send;
    send = null;
    issueRequest(true);
  }

  form.addEventListener("attachments-changed", update);
  form.addEventListener("htmx:confirm", (event) => {
    if (event.target !== form || !chips("sending").length) return;
    event.preventDefault();
    send = event.detail.issueRequest;
    failed = chips("failed").length;
    update();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !send) return;
    event.preventDefault();
    send = null;
    update();
  });
})();
