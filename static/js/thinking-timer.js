// Shows for how many seconds the model has been thinking, once it is more than two.
(() => {
  const startedAt = new Map();
  setInterval(() => {
    for (const counter of document.querySelectorAll(".answer__phase [data-seconds]")) {
      const answer = counter.closest(".answer__streaming").id;
      if (!startedAt.has(answer)) startedAt.set(answer, performance.now());
      const seconds = Math.round((performance.now() - startedAt.get(answer)) / 1000);
      if (seconds > 2) counter.textContent = `${seconds} s`;
    }
  }, 500);
})();
