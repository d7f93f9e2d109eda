// Moves the focus to the first invalid field of a form that was sent back.
document.querySelector("[aria-invalid='true']")?.focus();
