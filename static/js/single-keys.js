// Switches single-key shortcuts on and off in this browser. Loaded when the list of shortcuts opens.
(() => {
  const { dataset } = document.documentElement;
  const box = document.getElementById("single-keys");
  box.checked = dataset.singleKeys !== "off";
  box.disabled = false;
  box.addEventListener("change", () => {
    dataset.singleKeys = box.checked ? "on" : "off";
    try {
      localStorage.setItem("cato-single-keys", dataset.singleKeys);
    } catch (error) {
      console.warn("The choice holds for this page only.", error);
    }
  });
})();
