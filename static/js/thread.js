// Heals the page when the socket opens: tells what is here, and takes no turn twice, but the newer of two.
(() => {
  const turns = document.getElementById("turns");
  if (!turns) return;
  const revision = (turn) => Number(turn.querySelector("[data-revision]")?.dataset.revision ?? 0);

  // A line that broke is tried again after a pause that grows to 8 s, at another moment on every page.
  htmx.config.wsReconnectDelay = (tries) => Math.random() * Math.min(8000, 1000 * 2 ** tries);

  document.addEventListener("htmx:wsOpen", (event) => {
    if (!event.target.matches(".thread")) return;
    const have = {};
    for (const turn of turns.querySelectorAll("[data-turn]")) {
      have[turn.dataset.turn] = revision(turn);
    }
    event.detail.socketWrapper.sendImmediately(JSON.stringify({ have }));
  });

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.id === "send") {
      // A reply to the message can come later than the end of its answer; then there is nothing left to stop.
      // And the same button stays: pressed while it is replaced, it would not hear of it.
      const stops = event.detail.fragment.querySelector("[data-stops]")?.dataset.stops;
      const isThere = stops && stops === event.detail.target.querySelector("[data-stops]")?.dataset.stops;
      if (isThere || (stops && document.querySelector(`#${stops}-foot .tools`))) event.detail.shouldSwap = false;
      return;
    }
    // A menu that somebody just opened stays open over a foot that says something new.
    if (event.detail.target.querySelector(".menu[open]")) {
      event.detail.fragment.querySelector(".menu")?.setAttribute("open", "");
    }
    if (event.detail.target !== turns) return;
    const arriving = event.detail.fragment.querySelector("[data-turn]");
    const known = arriving && document.getElementById(arriving.id);
    if (known) {
      event.detail.shouldSwap = false;
      if (revision(arriving) <= revision(known)) return;
      known.replaceWith(arriving);
      htmx.process(arriving);
      htmx.trigger(arriving, "htmx:load");
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
