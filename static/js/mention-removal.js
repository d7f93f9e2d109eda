// Backspace removes a mention as a whole; the note about somebody without access goes once it was read.
(() => {
  const form = document.getElementById("composer");
  const note = document.getElementById("mention-note");
  const people = document.getElementById("mention-menu-list");
  if (!form || !note) return;

  form.addEventListener("keydown", (event) => {
    const { target: field } = event;
    if (event.key !== "Backspace" || field.id !== "message" || field.selectionStart !== field.selectionEnd) return;
    const before = field.value.slice(0, field.selectionStart);
    const options = people.querySelectorAll("[role=option]:not([data-document])");
    const option = [...options].find(({ dataset }) => before.endsWith(`@${dataset.name}`));
    if (!option) return;
    event.preventDefault();
    field.setRangeText("", before.length - option.dataset.name.length - 1, before.length, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  note.querySelector("button").addEventListener("click", () => {
    note.hidden = true;
    document.getElementById("message").focus();
  });
})();
