// After a form came back wrong, the first wrong field has the focus.
document.querySelector("[aria-invalid='true']")?.focus();
