// Ctrl K finds anything; the other shortcuts are listed in the dialog that Ctrl / opens.
(() => {
  const box = document.getElementById("find");
  if (!box) return;
  const field = document.getElementById("find-query");
  const rows = () => [...box.querySelectorAll("[data-found]")];
  const shown = document.getElementById("shortcuts");
  let at = 0;

  function mark() {
    for (const [number, row] of rows().entries()) row.toggleAttribute("data-chosen", number === at);
    rows()[at]?.scrollIntoView({ block: "nearest" });
  }

  function find() {
    if (!box.open) box.showModal();
    field.select();
    htmx.trigger(field, "open");
  }

  const acts = {
    k: { act: find },
    o: { shift: true, act: () => (location.href = document.querySelector("[data-new]").href) },
    s: { shift: true, act: () => document.querySelector(".sidebar [data-sidebar-toggle]")?.click() },
    ";": { shift: true, act: () => [...document.querySelectorAll("button.copy")].pop()?.click() },
    ":": { shift: true, act: () => [...document.querySelectorAll("button.copy")].pop()?.click() },
    "/": { act: () => shown.showModal() },
  };

  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.isComposing) return;
    const wanted = acts[event.key.toLowerCase()];
    if (!wanted || Boolean(wanted.shift) !== event.shiftKey) return;
    event.preventDefault();
    wanted.act();
  });

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-find]");
    if (link && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      find();
    } else if (event.target === box || event.target === shown) {
      event.target.close();
    }
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.target.id !== "find-results") return;
    at = 0;
    mark();
  });
  field.addEventListener("keydown", (event) => {
    const count = rows().length;
    if (event.key === "Enter" && rows()[at]) {
      event.preventDefault();
      rows()[at].click();
    } else if (count && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      at = (at + (event.key === "ArrowDown" ? 1 : count - 1)) % count;
      mark();
    }
  });
})();
