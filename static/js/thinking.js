// Tells how long the model has been thinking, once that is more than a moment.
(() => {
  const begun = new Map();
  setInterval(() => {
    for (const place of document.querySelectorAll(".phase [data-seconds]")) {
      const answer = place.closest(".open").id;
      if (!begun.has(answer)) begun.set(answer, performance.now());
      const seconds = Math.round((performance.now() - begun.get(answer)) / 1000);
      if (seconds > 2) place.textContent = `${seconds} s`;
    }
  }, 500);
})();
