// A source card on a phone: a swipe down closes it, a swipe to the side shows the next or previous source. Loaded with
// the first card.
(() => {
  const SWIPE = 60; // pixels
  let start = null;

  document.addEventListener("touchstart", (event) => {
    // Tables and code scroll to the side.
    const card = !event.target.closest("table, pre") && event.target.closest(".source-card:modal");
    const [touch] = event.touches;
    start = card ? { card, x: touch.clientX, y: touch.clientY, isAtTop: card.scrollTop <= 0 } : null;
  }, { passive: true });

  document.addEventListener("touchend", (event) => {
    if (!start) return;
    const [touch] = event.changedTouches;
    const [across, down] = [touch.clientX - start.x, touch.clientY - start.y];
    const { card, isAtTop } = start;
    start = null;
    if (Math.abs(across) > SWIPE && Math.abs(across) > 2 * Math.abs(down)) {
      const key = across < 0 ? "ArrowRight" : "ArrowLeft";
      card.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    } else if (isAtTop && down > SWIPE && down > 2 * Math.abs(across)) {
      card.querySelector(".source-card__close").click();
    }
  }, { passive: true });
})();
