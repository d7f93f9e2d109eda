// The list of chat models: the arrow keys select one, Enter chooses it. The list is loaded again when it opens, and
// keeps what was selected meanwhile.
(() => {
  const picker = document.getElementById("model-picker");
  if (!picker) return;
  const field = () => picker.querySelector("input, [role=listbox]");
  const selected = () => picker.querySelector("[aria-selected]");
  let moved = "";

  // A new thread gets what was chosen also if its first message is sent before the response.
  picker.addEventListener("click", ({ target }) => {
    const option = target.closest("[hx-vals]"), chosen = document.getElementById("model-field");
    if (option && chosen) chosen.value = JSON.parse(option.getAttribute("hx-vals")).model;
  });
  // The event of opening can come after the first key.
  for (const name of ["toggle", "input"]) {
    picker.addEventListener(name, ({ newState }) => {
      if (newState !== "open") moved = "";
    });
  }
  picker.addEventListener("htmx:afterSwap", () => {
    if (field()) selectOption(field(), picker, document.getElementById(moved) ?? selected());
  });
  picker.addEventListener("keydown", (event) => {
    if (event.target !== field() || event.isComposing) return;
    if (event.key === "Enter") selected()?.click();
    else if (!moveSelection(field(), picker, event.key)) return;
    else moved = selected().id;
    event.preventDefault();
  });
})();
