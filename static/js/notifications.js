// When an answer is complete, or somebody mentions the person, and the page is hidden, marks the title and, if the
// person wants it, notifies them.
(() => {
  const isWanted = "notifications" in document.currentScript.dataset;
  const canNotify = "Notification" in window && isSecureContext;
  const mark = "● ";
  const turns = document.getElementById("turns");
  const isFinished = (turn) => turn.querySelector(".turn__footer .turn__actions") !== null;
  const currentStates = () =>
    new Map([...turns.querySelectorAll("[data-turn]")].map((turn) => [turn.id, isFinished(turn)]));
  let previous = turns && currentStates();

  // An answer that was in progress on this page and is finished now has just been completed.
  const observer = new MutationObserver(() => {
    const states = currentStates();
    const completed = [...states].filter(([id, finished]) => finished && previous.get(id) === false);
    previous = states;
    if (completed.length && document.hidden) notifyOfAnswer(completed.at(-1)[0]);
  });
  if (turns) observer.observe(turns, { childList: true, subtree: true });

  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const { target } = event.detail;
    const mention = target.id === "toasts" && target.querySelector("[data-mention]:last-child");
    if (!mention || !document.hidden) return;
    notify(mention.dataset.title, mention.querySelector("span").textContent, "mention");
  });

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && document.title.startsWith(mark)) document.title = document.title.slice(mark.length);
  });

  function notifyOfAnswer(id) {
    const title = document.querySelector(".topbar__title").textContent.trim();
    const reason = document.getElementById(id).querySelector(".turn__status-text")?.textContent;
    notify(title, reason ?? document.getElementById("live-region").dataset.done, id);
  }

  function notify(title, body, tag) {
    if (!document.title.startsWith(mark)) document.title = mark + document.title;
    if (!isWanted || !canNotify || Notification.permission !== "granted") return;
    try {
      const notification = new Notification(title, { body, tag });
      notification.addEventListener("click", () => {
        window.focus();
        notification.close();
      });
    } catch (error) {
      // Browsers on Android do not show notifications of a page; the mark in the title remains.
      console.warn("The browser shows no notification.", error);
    }
  }
})();
