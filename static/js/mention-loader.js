// Loads the list of people and documents when an @ is typed for the first time.
(() => {
  const form = document.getElementById("composer");
  const menu = document.getElementById("mention-menu");
  if (!form || !menu) return;
  form.addEventListener("input", function load(event) {
    if (!/[@＠]/.test(event.target.value)) return;
    form.removeEventListener("input", load);
    for (const src of menu.dataset.scripts.split(" ")) {
      document.head.append(Object.assign(document.createElement("script"), { src, async: false }));
    }
  });
})();
