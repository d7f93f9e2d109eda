// An @ opens the list of people and documents. Typing narrows it; Tab or Enter inserts the selected person, or limits
// recall to the selected document.
(() => {
  const menu = document.getElementById("mention-menu");
  const form = document.getElementById("composer");
  if (!menu || !form) return;
  const list = menu.querySelector("[role=listbox]");
  const textarea = () => document.getElementById("message");
  const options = () => [...list.querySelectorAll("[role=option]")];
  const selected = () => list.querySelector("[aria-selected]");
  let loaded = "";
  let closedAt = null;

  // The @ before the cursor, and what was typed after it.
  function typed() {
    const before = textarea().value.slice(0, textarea().selectionStart);
    const found = before.match(/(?<![A-Za-z0-9_.+-])[@＠]([^@＠\n]{0,80})$/);
    return found && { start: found.index, text: found[1].toLowerCase() };
  }

  const address = () => {
    const space = document.querySelector("[name=space]:checked, select[name=space]")?.value;
    return menu.dataset.url + (space ? `?space=${space}` : "");
  };

  async function render() {
    if (typed() && typed().start !== closedAt && loaded !== address()) {
      loaded = address();
      await htmx.ajax("GET", loaded, { target: list, swap: "innerHTML" });
    }
    const mention = typed();
    for (const option of options()) mention ? matchOption(option, mention.text) : (option.hidden = true);
    const visible = options().filter((option) => !option.hidden);
    // The list of commands can be open, with its own selection.
    if (menu.hidden && !visible.length) return;
    for (const group of list.children) group.hidden = !visible.some((option) => group.contains(option));
    menu.hidden = !visible.length || mention.start === closedAt;
    textarea().setAttribute("aria-controls", menu.hidden ? "slash-menu-list" : list.id);
    selectOption(textarea(), list, visible.includes(selected()) ? selected() : visible[0]);
  }

  function choose(option) {
    const field = textarea();
    const { start } = typed();
    field.focus();
    menu.hidden = true;
    if ("document" in option.dataset) {
      field.setRangeText("", start, field.selectionStart, "end");
      htmx.trigger(option, "choose");
    } else insert(option.dataset, field, start);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function insert({ name, noAccess }, field, start) {
    const hasAccess = noAccess === undefined;
    field.setRangeText(`${hasAccess ? "@" : ""}${name} `, start, field.selectionStart, "end");
    const note = document.getElementById("mention-note");
    note.hidden = hasAccess;
    note.querySelector("span").textContent = note.dataset.text.replace("*", name);
  }

  form.addEventListener("input", (event) => event.target === textarea() && render());
  form.addEventListener("keydown", (event) => {
    if (event.target !== textarea() || event.isComposing || menu.hidden) return;
    if (event.key === "Tab" || event.key === "Enter") choose(selected());
    else if (event.key === "Escape") {
      closedAt = typed().start;
      menu.hidden = true;
    } else if (!moveSelection(textarea(), list, event.key)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
  list.addEventListener("mousedown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option) choose(option);
  });
  render();
})();
