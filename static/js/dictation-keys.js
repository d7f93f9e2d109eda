// Escape cancels a dictation, and sending the message first waits for what is being dictated.
(() => {
  const panel = document.getElementById("dictation");
  const press = (event, states, button) => {
    if (!states.includes(panel.dataset.state)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    panel.querySelector(`[data-${button}]`).click();
  };

  // Before other scripts, for which Escape stops an answer.
  const onKey = (event) => event.key === "Escape" && press(event, ["recording", "sending", "failed"], "cancel");
  addEventListener("keydown", onKey, true);
  const onSubmit = (event) => event.target.id === "composer" && press(event, ["recording", "sending"], "finish");
  addEventListener("submit", onSubmit, true);
})();
