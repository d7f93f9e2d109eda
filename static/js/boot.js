// Runs before the first paint: marks that scripts run, and restores whether the sidebar and the key hints are shown,
// and whether ? and / are shortcuts.
document.documentElement.dataset.script = "";
try {
  document.documentElement.dataset.sidebar = localStorage.getItem("cato-sidebar") || "open";
  document.documentElement.dataset.singleKeys = localStorage.getItem("cato-single-keys") || "on";
  if (localStorage.getItem("cato-keys-known")) document.documentElement.dataset.keysKnown = "";
} catch {
  // The browser can forbid storage; the sidebar is open then.
  document.documentElement.dataset.sidebar = "open";
}
