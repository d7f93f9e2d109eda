// Tells who is elsewhere that an answer is complete: a mark in the page's title, and a notification where it is wanted.
(() => {
  const isWanted = "notify" in document.currentScript.dataset;
  const canNotify = "Notification" in window && isSecureContext;
  const mark = "● ";

  // On the settings page: the browser is asked when the button is pressed, and what it says is told.
  const form = document.getElementById("notify");
  if (form) {
    const tell = (text) => (document.getElementById("notify-state").textContent = text);
    const permit = form.querySelector("[data-permit]");
    const allow = async () => {
      const isGiven = canNotify && (await Notification.requestPermission()) === "granted";
      if (isGiven) tell("");
      else tell(canNotify ? form.dataset.refused : form.dataset.unable);
      return isGiven;
    };
    const switchOn = form.querySelector("[data-switch-on]");
    switchOn?.addEventListener("click", async (event) => {
      if (canNotify && Notification.permission === "granted") return;
      event.preventDefault();
      if (await allow()) form.requestSubmit(switchOn);
    });
    permit?.addEventListener("click", async () => (permit.hidden = await allow()));
    if (isWanted && !canNotify) tell(form.dataset.unable);
    else if (isWanted && Notification.permission !== "granted") {
      permit.hidden = false;
      tell(Notification.permission === "denied" ? form.dataset.refused : form.dataset.unasked);
    }
  }

  const turns = document.getElementById("turns");
  if (!turns) return;
  const isOver = (turn) => turn.querySelector(".foot .tools") !== null;
  const known = () => new Map([...turns.querySelectorAll("[data-turn]")].map((turn) => [turn.id, isOver(turn)]));
  let before = known();

  // Whatever the socket swapped in: an answer that was under way on this page and now is over has just ended.
  new MutationObserver(() => {
    const now = known();
    const ended = [...now].filter(([id, over]) => over && before.get(id) === false);
    before = now;
    if (ended.length && document.hidden) come(ended.at(-1)[0]);
  }).observe(turns, { childList: true, subtree: true });

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && document.title.startsWith(mark)) document.title = document.title.slice(mark.length);
  });

  function come(id) {
    if (!document.title.startsWith(mark)) document.title = mark + document.title;
    if (!isWanted || !canNotify || Notification.permission !== "granted") return;
    const title = document.querySelector(".topbar-title").textContent.trim();
    const heard = document.getElementById("heard");
    const isFailed = document.getElementById(id).querySelector(".note.is-failed") !== null;
    try {
      const shown = new Notification(title, { body: isFailed ? heard.dataset.failed : heard.dataset.done, tag: id });
      shown.addEventListener("click", () => {
        window.focus();
        shown.close();
      });
    } catch (error) {
      // Browsers on Android show none from a page; the mark in the title is then all there is.
      console.warn("The browser shows no notification.", error);
    }
  }
})();
