// Registers the service worker, which shows a page of its own when Cato cannot be reached. Needs https or localhost.
navigator.serviceWorker?.register("/service-worker.js").catch((error) => {
  console.warn("The page for times without a connection cannot be kept.", error);
});
