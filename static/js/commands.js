// A slash opens the list of commands; it narrows while one types and completes what is chosen.
(() => {
  const list = document.getElementById("commands");
  const form = document.getElementById("composer");
  if (!list || !form) return;
  const options = [...list.querySelectorAll("[data-command]")];
  const box = () => document.getElementById("message");
  let chosen = null;
  let isClosed = false;

  const fitting = () => {
    const typed = box().value.match(/^\/(\S*)$/);
    return typed ? options.filter((option) => option.dataset.command.startsWith(typed[1].toLowerCase())) : [];
  };

  function choose(option) {
    chosen?.removeAttribute("aria-selected");
    chosen = option;
    chosen?.setAttribute("aria-selected", "true");
    chosen?.scrollIntoView({ block: "nearest" });
    if (chosen) box().setAttribute("aria-activedescendant", chosen.id);
    else box().removeAttribute("aria-activedescendant");
  }

  function draw() {
    const shown = isClosed ? [] : fitting();
    for (const option of options) option.hidden = !shown.includes(option);
    list.hidden = !shown.length;
    if (!shown.includes(chosen)) choose(shown[0] ?? null);
  }

  function complete(option) {
    const takes = option.querySelector("code").textContent.trim().includes(" ");
    box().value = `/${option.dataset.command}${takes ? " " : ""}`;
    box().focus();
    draw();
  }

  form.addEventListener("input", (event) => {
    if (event.target !== box()) return;
    isClosed = false;
    draw();
  });
  form.addEventListener(
    "keydown",
    (event) => {
      if (list.hidden || event.target !== box() || event.isComposing) return;
      const shown = options.filter((option) => !option.hidden);
      const at = shown.indexOf(chosen);
      if (event.key === "ArrowDown") choose(shown[(at + 1) % shown.length]);
      else if (event.key === "ArrowUp") choose(shown[(at + shown.length - 1) % shown.length]);
      else if (event.key === "Tab" && chosen) complete(chosen);
      else if (event.key === "Enter" && chosen && box().value !== `/${chosen.dataset.command}`) complete(chosen);
      else if (event.key === "Escape") {
        isClosed = true;
        draw();
      } else return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    true,
  );
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[data-command]");
    if (option) complete(option);
  });
  document.addEventListener("htmx:afterRequest", (event) => event.target === form && draw());
})();
