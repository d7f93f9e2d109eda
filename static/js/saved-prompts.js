// Loads the saved prompts when a slash is typed, and puts the text of the chosen or sent one into the composer.
(() => {
  const list = document.getElementById("offered-prompts");
  if (!list) return;
  const textarea = () => document.getElementById("message");
  let loaded = " ";

  // A list that was cut off is loaded again for what was typed; a blank stands for no slash.
  document.getElementById("composer").addEventListener("input", () => {
    const [, typed = " "] = textarea().value.normalize("NFKC").toLowerCase().match(/^\/(\S*)$/) ?? [];
    if (typed.startsWith(loaded) && list.childElementCount < list.dataset.most) return;
    loaded = typed;
    if (typed !== " ") htmx.trigger(list, "slash");
  });

  document.addEventListener("htmx:oobBeforeSwap", ({ detail }) => {
    const text = detail.target.id === "message" && detail.fragment.querySelector("textarea").value;
    if (!text) return;
    textarea().value = text;
    textarea().dispatchEvent(new Event("input", { bubbles: true }));
    textarea().focus();
    const [placeholder = ""] = text.match(/\{\p{L}[^{}\n]*\}/u) ?? [];
    const start = placeholder ? text.indexOf(placeholder) : text.length;
    textarea().setSelectionRange(start, start + placeholder.length);
  });
})();
