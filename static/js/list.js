// Keeps the list of threads as it is told: focus stays where it was, and what is read here is not new.
(() => {
  const list = document.getElementById("threads");
  if (!list) return;
  let socket = null;
  let isBack = false;
  let focused = "";

  const say = (told) => socket?.sendImmediately(JSON.stringify(told));
  const seen = () => document.visibilityState === "visible" && say({ seen: true });

  document.addEventListener("htmx:wsOpen", (event) => {
    socket = event.detail.socketWrapper;
    // What changed while the line was broken, nobody told.
    if (isBack) say({ back: true });
    isBack = true;
  });

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (event.detail.target === list) focused = list.contains(document.activeElement) ? document.activeElement.id : "";
  });
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const { target } = event.detail;
    if (target === list && focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (target?.id === "thread-title") {
      const mark = document.title.startsWith("● ") ? "● " : "";
      document.title = `${mark}${target.textContent} · Cato`;
    }
    // The end of an answer that somebody looks at is not news to them.
    if (target?.id?.endsWith("-foot") && event.target.querySelector?.(".tools")) seen();
  });
  document.addEventListener("visibilitychange", seen);
})();
