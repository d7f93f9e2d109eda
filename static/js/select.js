// A list that is chosen from: counts what is checked, and checks all of it at once; also in a list that came later.
(() => {
  const begin = (form) => {
    const all = form.querySelector("[data-select-all]");
    const boxes = [...form.querySelectorAll("tbody input[type='checkbox']")];
    const count = form.querySelector("[data-count]");
    const submit = form.querySelector("[data-count-button]");
    const bar = form.querySelector(".bulk");
    const tell = () => {
      const chosen = boxes.filter((box) => box.checked).length;
      count.textContent = form.dataset.selected.replace("*", chosen);
      submit.textContent = form.dataset.forget.replace("*", chosen);
      submit.disabled = chosen === 0;
      bar.classList.toggle("is-idle", chosen === 0);
      all.checked = chosen > 0 && chosen === boxes.length;
      all.indeterminate = chosen > 0 && chosen < boxes.length;
    };
    all.closest("label").hidden = false;
    all.addEventListener("change", () => {
      for (const box of boxes) box.checked = all.checked;
      tell();
    });
    form.addEventListener("change", (event) => event.target !== all && tell());
    tell();
  };
  htmx.onLoad((root) => {
    for (const form of root.querySelectorAll("form[data-select]")) begin(form);
  });
})();
