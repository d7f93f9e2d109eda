// What somebody typed and did not send leaves the browser with their sign-in, also when that was ended elsewhere.
(() => {
  const SIGNED_OUT = 4401;
  const { person } = document.body.dataset;
  const isSignedOut = !person && document.querySelector("[data-signed-out]");
  // Pages of errors know nobody, whoever is signed in.
  if (person || isSignedOut) {
    try {
      for (const key of Object.keys(localStorage)) {
        if (key.startsWith("draft ") && !(person && key.startsWith(`draft ${person} `))) localStorage.removeItem(key);
      }
    } catch (error) {
      console.warn("Drafts cannot be removed here.", error);
    }
  }

  // The page is asked for anew, and signing in takes its place.
  document.addEventListener("htmx:wsClose", (event) => {
    if (event.detail.event?.code === SIGNED_OUT) location.reload();
  });
})();
