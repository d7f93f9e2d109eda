// Before the first paint: says that scripts run, and keeps the sidebar as it was left.
document.documentElement.dataset.script = "";
try {
  document.documentElement.dataset.sidebar = localStorage.getItem("cato-sidebar") || "open";
} catch {
  // Storage can be forbidden; the sidebar is then simply open.
  document.documentElement.dataset.sidebar = "open";
}
