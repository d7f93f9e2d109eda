// Lets the text of a turn that was forgotten everywhere fade out; the box that replaces it keeps its height.
document.addEventListener("htmx:oobBeforeSwap", ({ detail: { target, fragment } }) => {
  const erased = fragment.querySelector(".turn--erased");
  if (!erased || target.id !== erased.id || target.matches(".turn--erased")) return;
  for (const part of [".turn__message", ".answer"]) {
    const [old, box] = [target, erased].map((turn) => turn.querySelector(`:scope > ${part}`));
    if (!old.offsetHeight) continue;
    box.style.minBlockSize = `${old.offsetHeight}px`;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) continue;
    const text = old.cloneNode(true);
    text.classList.add("turn__fading");
    text.inert = true;
    text.setAttribute("hx-disable", "");
    for (const node of text.querySelectorAll("[id]")) node.removeAttribute("id");
    text.addEventListener("animationend", () => text.remove());
    box.append(text);
  }
});
