// A slash opens the list of commands and saved prompts. Typing narrows it; Tab or Enter takes the selected one.
(() => {
  const list = document.getElementById("slash-menu");
  const form = document.getElementById("composer");
  if (!list) return;
  const options = () => [...list.querySelectorAll("[data-command]")];
  const textarea = () => document.getElementById("message");
  let isClosed = false;

  const matching = () => {
    const [, typed = " "] = textarea().value.normalize("NFKC").toLowerCase().match(/^\/(\S*)$/) ?? [];
    return options().filter((option) => option.dataset.command.startsWith(typed));
  };
  const selected = () => list.querySelector("[aria-selected]");

  function render() {
    const visible = isClosed ? [] : matching();
    // The list of mentions can be open, with its own selection.
    if (list.hidden && !visible.length) return;
    for (const option of options()) option.hidden = !visible.includes(option);
    list.hidden = !visible.length;
    selectOption(textarea(), list, visible.includes(selected()) ? selected() : visible[0]);
  }

  const isPrompt = (option) => option.hasAttribute("hx-get");
  const isComplete = (option) => !isPrompt(option) && textarea().value === `/${option.dataset.command}`;

  function complete(option) {
    if (isPrompt(option)) return htmx.trigger(option, "choose");
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
      if (event.key === "Tab" || (event.key === "Enter" && !isComplete(selected()))) complete(selected());
      else if (event.key === "Escape") {
        isClosed = true;
        render();
      } else if (!moveSelection(textarea(), list, event.key)) return;
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
  document.addEventListener("htmx:afterRequest", render);
})();
