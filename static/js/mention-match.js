// Shows an option if a word of its name starts with the text, which is set in bold.
function matchOption(option, text) {
  const name = option.dataset.name;
  const words = [...name.matchAll(/(?<![\p{L}\p{N}])[\p{L}\p{N}]/gu)].map((word) => word.index);
  const at = words.find((start) => name.slice(start).toLowerCase().startsWith(text)) ?? -1;
  option.hidden = at < 0;
  const bold = document.createElement("b");
  bold.textContent = name.slice(at, at + text.length);
  if (at >= 0) option.querySelector("bdi").replaceChildren(name.slice(0, at), bold, name.slice(at + text.length));
}
