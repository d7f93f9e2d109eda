// Counts the selected rows of a table and selects all of them at once, also in a table that htmx loaded later.
(() => {
  const attach = (form) => {
    const selectAll = form.querySelector("[data-select-all]");
    const boxes = [...form.querySelectorAll("tbody input[type='checkbox']")];
    const count = form.querySelector("[data-count]");
    const submit = form.querySelector("[data-submit]");
    const bar = form.querySelector(".bulk-bar");
    const update = () => {
      const selected = boxes.filter((box) => box.checked).length;
      count.textContent = form.dataset.selectedLabel.replace("*", selected);
      submit.textContent = form.dataset.submitLabel.replace("*", selected);
      submit.disabled = selected === 0;
      bar.classList.toggle("bulk-bar--idle", selected === 0);
      selectAll.checked = selected > 0 && selected === boxes.length;
      selectAll.indeterminate = selected > 0 && selected < boxes.length;
    };
    selectAll.closest("label").hidden = false;
    selectAll.addEventListener("change", () => {
      for (const box of boxes) box.checked = selectAll.checked;
      update();
    });
    form.addEventListener("change", (event) => event.target !== selectAll && update());
    update();
  };
  htmx.onLoad((root) => {
    for (const form of root.querySelectorAll("form[data-bulk-select]")) attach(form);
  });
})();
