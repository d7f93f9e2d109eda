// A slash opens the list of commands. Typing narrows it; Tab or Enter completes the selected command.
(() => {
  const list = document.getElementById("slash-menu");
  const form = document.getElementById("composer");
  if (!list || !form) return;
  const options = [...list.querySelectorAll("[data-command]")];
  const textarea = () => document.getElementById("message");
  let selected = null;
  let isClosed = false;

  const matching = () => {
    const typed = textarea().value.match(/^\/(\S*)$/);
    return typed ? options.filter((option) => option.dataset.command.startsWith(typed[1].toLowerCase())) : [];
  };

  function select(option) {
    selected?.removeAttribute("aria-selected");
    selected = option;
    selected?.setAttribute("aria-selected", "true");
    selected?.scrollIntoView({ block: "nearest" });
    if (selected) textarea().setAttribute("aria-activedescendant", selected.id);
    else textarea().removeAttribute("aria-activedescendant");
  }

  function render() {
    const visible = isClosed ? [] : matching();
    for (const option of options) option.hidden = !visible.includes(option);
    list.hidden = !visible.length;
    if (!visible.includes(selected)) select(visible[0] ?? null);
  }

  const isComplete = (option) => textarea().value === `/${option.dataset.command}`;

  function complete(option) {
    const hasArguments = option.querySelector("code").textContent.trim().includes(" ");
    textarea().value = `/${option.dataset.command}${hasArguments ? " " : ""}`;
    textarea().focus();
    render();
  }

  form.addEventListener("input", (event) => {
    if (event.target !== textarea()) return;
    isClosed = false;
    render();
  });
  form.addEventListener(
    "keydown",
    (event) => {
      if (list.hidden || event.target !== textarea() || event.isComposing) return;
      const visible = options.filter((option) => !option.hidden);
      const index = visible.indexOf(selected);
      if (event.key === "ArrowDown") select(visible[(index + 1) % visible.length]);
      else if (event.key === "ArrowUp") select(visible[(index + visible.length - 1) % visible.length]);
      else if (event.key === "Tab" && selected) complete(selected);
      else if (event.key === "Enter" && selected && !isComplete(selected)) complete(selected);
      else if (event.key === "Escape") {
        isClosed = true;
        render();
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
  document.addEventListener("htmx:afterRequest", (event) => event.target === form && render());
})();
