// On the settings page: asks the browser for permission to notify, and shows what the browser answered.
(() => {
  const form = document.getElementById("notification-settings");
  if (!form) return;
  const canNotify = "Notification" in window && isSecureContext;
  const requestButton = form.querySelector("[data-request-permission]");
  const switchOn = form.querySelector("[data-switch-on]");
  const setStatus = (text) => (document.getElementById("notification-state").textContent = text);

  const requestPermission = async () => {
    const isGranted = canNotify && (await Notification.requestPermission()) === "granted";
    if (isGranted) setStatus("");
    else setStatus(canNotify ? form.dataset.permissionDenied : form.dataset.unsupported);
    return isGranted;
  };

  switchOn?.addEventListener("click", async (event) => {
    if (canNotify && Notification.permission === "granted") return;
    event.preventDefault();
    if (await requestPermission()) form.requestSubmit(switchOn);
  });
  requestButton?.addEventListener("click", async () => (requestButton.hidden = await requestPermission()));

  // The page has this button only while notifications are on.
  if (!requestButton) return;
  if (!canNotify) setStatus(form.dataset.unsupported);
  else if (Notification.permission !== "granted") {
    requestButton.hidden = false;
    const { permissionDenied, permissionNeeded } = form.dataset;
    setStatus(Notification.permission === "denied" ? permissionDenied : permissionNeeded);
  }
})();
