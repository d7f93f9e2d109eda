// Files that are dropped or pasted anywhere on the page are given to the form that accepts files.
(() => {
  const form = document.querySelector("[data-accepts-files]");
  if (!form) return;
  const add = (files) => form.dispatchEvent(new CustomEvent("files-added", { detail: [...files] }));
  const hasFiles = (event) => event.dataTransfer?.types.includes("Files");
  let depth = 0;

  document.addEventListener("dragenter", (event) => {
    if (hasFiles(event)) document.body.classList.toggle("app--dropping", ++depth > 0);
  });
  document.addEventListener("dragleave", (event) => {
    if (hasFiles(event)) document.body.classList.toggle("app--dropping", --depth > 0);
  });
  document.addEventListener("dragover", (event) => hasFiles(event) && event.preventDefault());
  document.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    depth = 0;
    document.body.classList.remove("app--dropping");
    add(event.dataTransfer.files);
  });
  document.addEventListener("paste", (event) => {
    const { files, types } = event.clipboardData;
    // Office programs add a picture to their text; a file can come with its name as plain text.
    const hasText = types.includes("text/plain") && types.includes("text/html");
    if (!files.length || hasText) return;
    event.preventDefault();
    add(files);
  });
})();
