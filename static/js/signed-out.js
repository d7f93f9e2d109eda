// Deletes the drafts of other people from the browser, and reloads the page when its login session was revoked.
(() => {
  const SIGNED_OUT = 4401;
  const { person } = document.body.dataset;
  const isSignedOut = !person && document.querySelector("[data-signed-out]");
  // Error pages do not name the person, even if somebody is signed in.
  if (person || isSignedOut) {
    try {
      for (const key of Object.keys(localStorage)) {
        if (key.startsWith("draft ") && !(person && key.startsWith(`draft ${person} `))) localStorage.removeItem(key);
      }
    } catch (error) {
      console.warn("Drafts cannot be deleted in this browser.", error);
    }
  }

  // The reload leads to the sign-in page.
  document.addEventListener("htmx:wsClose", (event) => {
    if (event.detail.event?.code === SIGNED_OUT) location.reload();
  });
})();
