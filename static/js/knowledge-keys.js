// Keys of the page of statements: the arrows select one, and / leads to the words. The letters of a statement's links
// and buttons press them while the focus is in the statement; Escape closes the form that a letter opened.
(() => {
  const words = document.getElementById("knowledge-text");

  function select(summary) {
    summary.focus({ preventScroll: true });
    summary.scrollIntoView({ block: "nearest" });
  }

  function move(by, statement) {
    const all = [...document.querySelectorAll(".statement__summary")];
    const at = statement ? all.indexOf(statement.querySelector(".statement__summary")) : -1;
    if (statement && by < 0 && at === 0) words.focus();
    else if (all[at + by]) select(all[at + by]);
    else return false;
    return true;
  }

  // A summary opens its form, with the first field focused.
  function press(control) {
    control.closest(".statement > details").open = true;
    if (!control.matches("summary")) return control.click();
    control.parentElement.open = true;
    control.parentElement.querySelector("textarea, input:not([type='hidden'])").focus();
  }

  function act(event, statement) {
    const { key, target } = event;
    const form = target.closest(".statement__form[open]");
    if (key === "Escape" && form) {
      form.open = false;
      form.querySelector("summary").focus();
      return true;
    }
    const isBeforeFirst = target === words || target === document.body || target.id === "statements";
    if (key === "ArrowDown" && isBeforeFirst) return move(1);
    if (target.matches("input, select, textarea")) return false;
    if (key === "/" && document.documentElement.dataset.singleKeys !== "off") return words.focus() ?? true;
    if (!statement) return false;
    if (key === "ArrowDown") return move(1, statement);
    if (key === "ArrowUp") return move(-1, statement);
    if (!/^[okef]$/.test(key)) return false;
    const letter = `[aria-keyshortcuts="${key}"]`;
    const control = target.closest("li")?.querySelector(letter) ?? statement.querySelector(letter);
    if (control) press(control);
    return Boolean(control);
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!event.target.closest || document.querySelector("dialog[open]")) return;
    if (act(event, event.target.closest(".statement"))) event.preventDefault();
  });
})();
