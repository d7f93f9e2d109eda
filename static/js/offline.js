// Says when the line is gone: one writes on, and what is written is sent when it is back.
(() => {
  const place = document.getElementById("offline");
  const form = document.getElementById("composer");
  if (!place || !form) return;
  let lost = 0;

  function tell(text) {
    place.textContent = text;
    place.hidden = !text;
    form.toggleAttribute("data-offline", !navigator.onLine);
  }

  function look() {
    clearTimeout(lost);
    tell(navigator.onLine ? "" : place.dataset.offline);
  }

  form.addEventListener("submit", (event) => {
    if (navigator.onLine) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  addEventListener("offline", look);
  addEventListener("online", look);
  document.addEventListener("htmx:wsOpen", look);
  // A line that is back within a moment was hardly gone.
  document.addEventListener("htmx:wsClose", (event) => {
    clearTimeout(lost);
    // Too many open pages: this one is not tried again.
    if (event.detail.event.code === 4429) {
      tell(place.dataset.tooMany);
      return;
    }
    lost = setTimeout(() => navigator.onLine && tell(place.dataset.lost), 2500);
  });
  look();
})();
