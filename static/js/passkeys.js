// Forms that send a passkey: asks the browser for it first, with options from the server, and says if there was none.
(() => {
  const askBrowser = async (form) => {
    const response = await fetch(form.dataset.options, { method: "POST", body: new FormData(form) });
    const options = await response.json();
    if (!response.ok) throw new Error(options.error);
    if (form.dataset.passkey === "create") {
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options.publicKey);
      return navigator.credentials.create({ publicKey });
    }
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey);
    return navigator.credentials.get({ publicKey });
  };

  for (const form of document.querySelectorAll("form[data-passkey]")) {
    const status = form.querySelector("[role=status]");
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      status.textContent = "";
      try {
        form.elements.credential.value = JSON.stringify((await askBrowser(form)).toJSON());
      } catch (error) {
        // Cancelled, timed out, no passkey of this server, or a browser without passkeys.
        console.info("No passkey.", error);
        status.textContent = form.dataset.failed;
        return;
      }
      form.submit();
    });
  }
})();
