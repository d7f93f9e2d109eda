// Shows that the browser is offline or the connection to the server is lost.
(() => {
  const status = document.getElementById("connection");
  const form = document.getElementById("composer");
  if (!status || !form) return;
  let timer = 0;

  function setStatus(text) {
    status.textContent = text;
    status.hidden = !text;
    form.toggleAttribute("data-offline", !navigator.onLine);
  }

  function updateStatus() {
    clearTimeout(timer);
    setStatus(navigator.onLine ? "" : status.dataset.offline);
  }

  form.addEventListener("submit", (event) => {
    if (navigator.onLine) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  addEventListener("offline", updateStatus);
  addEventListener("online", updateStatus);
  document.addEventListener("htmx:wsOpen", updateStatus);
  document.addEventListener("htmx:wsClose", (event) => {
    clearTimeout(timer);
    // Too many pages are open; this one does not reconnect.
    if (event.detail.event.code === 4429) setStatus(status.dataset.tooMany);
    // A connection that returns within a moment is not worth a message.
    else timer = setTimeout(() => navigator.onLine && setStatus(status.dataset.disconnected), 2500);
  });
  updateStatus();
})();
