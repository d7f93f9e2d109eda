// Runs before the first paint: marks that scripts run, and restores whether the sidebar and the key hints are shown.
document.documentElement.dataset.script = "";
try {
  document.documentElement.dataset.sidebar = localStorage.getItem("cato-sidebar") || "open";
  if (localStorage.getItem("cato-keys-known")) document.documentElement.dataset.keysKnown = "";
} catch {
  // The browser can forbid storage; the sidebar is open then.
  document.documentElement.dataset.sidebar = "open";
}
