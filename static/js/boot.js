// Runs before the first paint: marks that scripts run, and restores whether the sidebar is open.
document.documentElement.dataset.script = "";
try {
  document.documentElement.dataset.sidebar = localStorage.getItem("cato-sidebar") || "open";
} catch {
  // The browser can forbid storage; the sidebar is open then.
  document.documentElement.dataset.sidebar = "open";
}
