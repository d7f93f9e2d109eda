// Updates the list of threads over the socket: keeps the focus, and reports what is read here.
(() => {
  const list = document.getElementById("threads");
  if (!list) return;
  let socket = null;
  let wasConnected = false;
  let focused = "";

  const send = (message) => socket?.sendImmediately(JSON.stringify(message));
  const reportSeen = () => document.visibilityState === "visible" && send({ seen: true });
  let reading = 0;

  document.addEventListener("htmx:wsOpen", (event) => {
    socket = event.detail.socketWrapper;
    // Changes during a lost connection were not received.
    if (wasConnected) send({ back: true });
    wasConnected = true;
  });

  // A new message moves the link of this thread to the top of today's, unless it is pinned.
  function moveLatest() {
    const item = list.querySelector("a[data-latest]")?.closest("li");
    const today = document.getElementById("threads-today");
    item?.querySelector("a").removeAttribute("data-latest");
    if (item && !item.closest("#threads-pinned") && today.firstElementChild !== item) today.prepend(item);
  }

  // The keys of context menus open the menu of the focused thread.
  list.addEventListener("keydown", (event) => {
    if (event.key !== "ContextMenu" && !(event.key === "F10" && event.shiftKey)) return;
    event.preventDefault();
    event.target.closest("li")?.querySelector("[data-dialog]")?.click();
  });

  document.addEventListener("htmx:oobBeforeSwap", (event) => {
    if (!list.contains(event.detail.target)) return;
    if (list.contains(document.activeElement)) focused = document.activeElement.id;
    else if (document.activeElement !== document.body) focused = "";
  });
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const { target } = event.detail;
    moveLatest();
    // A link that moves is deleted first; it is focused again in its new place.
    if (list.contains(target) && focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (target?.id === "thread-title") {
      const mark = document.title.startsWith("● ") ? "● " : "";
      document.title = `${mark}${target.textContent} · Cato`;
    }
  });
  // An answer that finishes while its reader looks at it is read; so is one that arrives complete with its turn.
  document.addEventListener("htmx:load", ({ target }) => {
    if (!target.matches(".turn, .turn__footer") || !target.querySelector(".turn__actions")) return;
    clearTimeout(reading);
    reading = setTimeout(reportSeen);
  });
  // So is a mention in the thread that its reader looks at, and no toast is shown.
  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const thread = detail.target.id === "toasts" && detail.fragment.querySelector("[data-mention]")?.dataset.mention;
    if (!thread || document.hidden || location.pathname !== `/t/${thread}`) return;
    detail.shouldSwap = false;
    reportSeen();
  });
  document.addEventListener("visibilitychange", reportSeen);
})();
