// Selects options of a list while its field keeps the focus.
function selectOption(field, list, option) {
  list.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
  option?.setAttribute("aria-selected", "true");
  option?.scrollIntoView({ block: "nearest" });
  field.setAttribute("aria-activedescendant", option?.id ?? "");
}

// Returns whether the key is an arrow.
function moveSelection(field, list, key) {
  const options = [...list.querySelectorAll("[role=option]:not([hidden])")];
  const step = { ArrowDown: 1, ArrowUp: options.length - 1 }[key];
  const index = options.indexOf(list.querySelector("[aria-selected]"));
  if (step !== undefined) selectOption(field, list, options[(index + step) % options.length]);
  return step !== undefined;
}
