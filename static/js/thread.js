// Heals the page when the socket opens: tells what is here, and takes no turn twice.
(() => {
  const turns = document.getElementById("turns");
  if (!turns) return;

  document.addEventListener("htmx:wsOpen", (event) => {
    const have = {};
    for (const turn of turns.querySelectorAll("[data-turn]")) {
      const open = document.getElementById(`${turn.id}-open`);
      have[turn.dataset.turn] = Number(open?.dataset.revision ?? 0);
    }
    event.detail.socketWrapper.sendImmediately(JSON.stringify({ have }));
  });

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.id === "send") {
      // A reply to the message can come later than the end of its answer; then there is nothing left to stop.
      const stops = event.detail.fragment.querySelector("[data-stops]")?.dataset.stops;
      if (stops && document.querySelector(`#${stops}-foot .tools`)) event.detail.shouldSwap = false;
      return;
    }
    if (event.detail.target !== turns) return;
    const arriving = event.detail.fragment.querySelector("[data-turn]");
    if (arriving && document.getElementById(arriving.id)) {
      event.detail.shouldSwap = false;
      return;
    }
    turns.hidden = false;
    document.querySelector(".beginning")?.remove();
  });

  // Screen readers hear that an answer is there, not each word of it.
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const { target } = event.detail;
    if (!target?.id?.endsWith("-foot") || !event.target.querySelector?.(".tools")) return;
    const heard = document.getElementById("heard");
    heard.textContent = "";
    requestAnimationFrame(() => (heard.textContent = heard.dataset.done));
  });
})();
