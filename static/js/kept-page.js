// Keeps a page that is to be saved as a note while its reader signs in: a form drops what follows the # of an address.
(() => {
  if (location.hash.length < 2) return;
  try {
    sessionStorage.setItem("page to save", location.hash);
  } catch (error) {
    console.warn("The page cannot be kept in this browser while you sign in.", error);
  }
})();
