// Tells how long the model has been thinking, once that is more than a moment.
(() => {
  const begun = new WeakMap();
  setInterval(() => {
    for (const place of document.querySelectorAll(".phase [data-seconds]")) {
      if (!begun.has(place)) begun.set(place, performance.now());
      const seconds = Math.round((performance.now() - begun.get(place)) / 1000);
      if (seconds > 2) place.textContent = `${seconds} s`;
    }
  }, 500);
})();
