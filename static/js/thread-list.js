// Updates the list of threads over the socket: keeps the focus, and reports what is read here.
(() => {
  const list = document.getElementById("threads");
  if (!list) return;
  let socket = null;
  let wasConnected = false;
  let focused = "";

  const send = (message) => socket?.sendImmediately(JSON.stringify(message));
  const reportSeen = () => document.visibilityState === "visible" && send({ seen: true });

  document.addEventListener("htmx:wsOpen", (event) => {
    socket = event.detail.socketWrapper;
    // Changes during a lost connection were not received.
    if (wasConnected) send({ back: true });
    wasConnected = true;
  });

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (!list.contains(event.detail.target)) return;
    if (list.contains(document.activeElement)) focused = document.activeElement.id;
    else if (document.activeElement !== document.body) focused = "";
  });
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const { target } = event.detail;
    // A link that moves is deleted first; it is focused again in its new place.
    if (list.contains(target) && focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (target?.id === "thread-title") {
      const mark = document.title.startsWith("● ") ? "● " : "";
      document.title = `${mark}${target.textContent} · Cato`;
    }
    // An answer that finishes while its reader looks at it is read.
    if (target?.id?.endsWith("-footer") && event.target.querySelector?.(".turn__actions")) reportSeen();
  });
  document.addEventListener("visibilitychange", reportSeen);
})();
