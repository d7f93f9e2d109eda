// Counts how often each key of the composer was used, and hides its hint after three times.
(() => {
  const MOST = 3;
  const form = document.getElementById("composer");
  const list = document.getElementById("key-hints");
  const hints = [...list.querySelectorAll("[data-hint]")];
  const read = () => JSON.parse(localStorage.getItem("cato-keys") ?? "{}");

  function show(uses) {
    for (const hint of hints) hint.hidden = uses[hint.dataset.hint] >= MOST;
    if (!hints.every((hint) => hint.hidden)) return;
    list.hidden = true;
    // Read before the next page is painted, by boot.js.
    localStorage.setItem("cato-keys-known", "yes");
  }

  function count(hint) {
    const uses = read();
    uses[hint] = (uses[hint] ?? 0) + 1;
    localStorage.setItem("cato-keys", JSON.stringify(uses));
    show(uses);
  }

  try {
    show(read());
  } catch (error) {
    console.warn("The use of keys cannot be counted in this browser.", error);
    return;
  }

  form.addEventListener("input", ({ target, data, inputType }) => {
    if (inputType === "insertLineBreak") count("line-break");
    else if (data === "/" && target.value === "/") count("slash");
    else if (data === "@" || data === "＠") count("at");
  });
  // A button that sends is the submitter.
  form.addEventListener("submit", ({ submitter }) => submitter || count("enter"));
  form.addEventListener("keydown", ({ key, target, defaultPrevented }) => {
    if (key === "ArrowUp" && defaultPrevented && target.value === "") count("up");
  });
})();
