// Updates the list of threads over the socket: keeps the focus, and reports what is read here.
(() => {
  const list = document.getElementById("threads");
  if (!list) return;
  let socket = null;
  let focused = "";

  const send = (message) => socket?.sendImmediately(JSON.stringify(message));
  const reportSeen = () => document.visibilityState === "visible" && send({ seen: true });
  let reading = 0;

  document.addEventListener("htmx:wsOpen", (event) => {
    socket = event.detail.socketWrapper;
    // Changes while the page was loaded slowly, or its connection was lost, were not received.
    if (performance.now() > 1000) send({ back: true });
  });

  // A new message moves the link of this thread to the top of today's, unless it is pinned.
  function moveLatest() {
    const link = list.querySelector("[data-latest]");
    link?.removeAttribute("data-latest");
    if (link && !link.closest("#threads-pinned")) document.getElementById("threads-today").prepend(link.closest("li"));
  }

  // The keys of context menus open the menu of the focused thread.
  list.addEventListener("keydown", (event) => {
    if (event.key !== "ContextMenu" && !(event.key === "F10" && event.shiftKey)) return;
    event.preventDefault();
    event.target.closest("li")?.querySelector("[data-dialog]")?.click();
  });

  document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target, fragment } }) => {
    if (!list.contains(target)) return;
    if (list.contains(document.activeElement)) focused = document.activeElement.id;
    else if (document.activeElement !== document.body) focused = "";
    // A thread that moves to the top of today's leaves its old place.
    for (const { id } of fragment.querySelectorAll("li[id]")) document.getElementById(id)?.remove();
  });
  // `detail.target` is what was replaced, and no longer in the page.
  document.addEventListener("htmx:oobAfterSwap", ({ target }) => {
    moveLatest();
    if (list.contains(target) && focused) document.getElementById(focused)?.focus({ preventScroll: true });
    if (target.id === "thread-title") {
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
