// Synchronises the thread when the socket opens: sends the known revisions, and keeps the newer version of a turn.
// A page that lacks too many turns, or its thread, is loaded again.
(() => {
  const turns = document.getElementById("turns");
  if (!turns) return;
  const NO_ACCESS = 4404;
  const TOO_FAR_BEHIND = 4409;
  const revision = (turn) => Number(turn.querySelector("[data-revision]")?.dataset.revision ?? 0);

  // Reconnects after a random pause that grows to 8 s, so that not all pages reconnect at the same moment.
  htmx.config.wsReconnectDelay = (tries) => Math.random() * Math.min(8000, 1000 * 2 ** tries);

  document.addEventListener("htmx:wsOpen", (event) => {
    if (!event.target.matches(".thread")) return;
    const have = {};
    for (const turn of turns.querySelectorAll("[data-turn]")) {
      have[turn.dataset.turn] = revision(turn);
    }
    event.detail.socketWrapper.sendImmediately(JSON.stringify({ have }));
  });

  document.addEventListener("htmx:wsClose", (event) => {
    if ([NO_ACCESS, TOO_FAR_BEHIND].includes(event.detail.event?.code)) location.reload();
  });

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target.id === "send") {
      // The response to a message can arrive after its answer has ended; then there is nothing left to stop.
      // The same Stop button is not replaced: a click during the replacement would be lost.
      const turnId = event.detail.fragment.querySelector("[data-stops-turn]")?.dataset.stopsTurn;
      const isSame = turnId && turnId === event.detail.target.querySelector("[data-stops-turn]")?.dataset.stopsTurn;
      const ended = `#${turnId}:not(.turn--queued) .answer__streaming:not(.answer__streaming--live)`;
      if (isSame || (turnId && document.querySelector(ended))) event.detail.shouldSwap = false;
      return;
    }
    const arriving = event.detail.target === turns && event.detail.fragment.querySelector("[data-turn]");
    const known = arriving ? document.getElementById(arriving.id) : event.detail.target;
    // What somebody has opened stays open when it is replaced.
    for (const kind of [".menu", ".recall__panel", ".turn__unfold"]) {
      if (known?.querySelector(`${kind}[open]`)) {
        event.detail.fragment.querySelector(kind)?.setAttribute("open", "");
      }
    }
    if (event.detail.target !== turns) return;
    if (arriving && known) {
      event.detail.shouldSwap = false;
      if (revision(arriving) <= revision(known)) return;
      known.replaceWith(arriving);
      htmx.process(arriving);
      htmx.trigger(arriving, "htmx:load");
      return;
    }
    turns.hidden = false;
    document.querySelector(".empty-thread")?.remove();
  });

  // Screen readers announce once that the answer is complete and what it is based on, or why it ended early.
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const { target } = event.detail;
    if (!target.matches(".turn__footer") || !event.target.querySelector?.(".turn__actions")) return;
    // The footer that was replaced was under a complete answer already.
    if (target.querySelector(".turn__actions")) return;
    const region = document.getElementById("live-region");
    const turn = document.getElementById(target.id.replace("-footer", ""));
    const name = turn.querySelector(".turn__author")?.textContent ?? "";
    const isOwn = turn.dataset.author === document.body.dataset.person;
    const done = isOwn ? region.dataset.done : region.dataset.doneForOther.replace("*", () => name);
    const reason = turn.querySelector(".turn__status-text")?.textContent;
    const sources = turn.querySelector("[data-announcement]")?.dataset.announcement;
    region.textContent = "";
    requestAnimationFrame(() => {
      region.textContent = [reason ?? done, sources].filter(Boolean).join(" ");
    });
  });
})();
