// Reads an answer aloud. The server sends it in parts; the next one is fetched while one is heard.
(() => {
  const player = document.getElementById("read-aloud");
  const status = document.getElementById("read-aloud-status");
  let current;

  function mark() {
    for (const button of document.querySelectorAll("[data-speech]")) {
      const isOn = button.dataset.speech === current?.url;
      if (button.getAttribute("aria-pressed") === String(isOn)) continue;
      button.setAttribute("aria-pressed", isOn);
      button.querySelector("use").setAttribute("href", isOn ? "#i-stop" : "#i-speaker");
      button.title = button.querySelector("span").textContent = player.dataset[isOn ? "stop" : "start"];
    }
  }

  function stop(text = player.dataset.ended) {
    if (!current) return;
    current.request.abort();
    player.pause();
    URL.revokeObjectURL(player.src);
    player.removeAttribute("src");
    current = undefined;
    status.textContent = text;
    mark();
  }

  // The error is visible for a while, like the message after copying.
  function fail(text) {
    const toast = Object.assign(document.createElement("p"), { className: "toast", textContent: text });
    document.getElementById("toasts").replaceChildren(toast);
    stop("");
  }

  async function load({ url, request }, number) {
    const headers = { "X-CSRFToken": document.querySelector("#action-form [name=csrfmiddlewaretoken]").value };
    const response = await fetch(`${url}?part=${number}`, { method: "POST", headers, signal: request.signal });
    if (response.status === 204) return null;
    const isSound = response.headers.get("Content-Type")?.startsWith("audio/");
    if (response.ok && isSound) return response.blob();
    const isText = response.headers.get("Content-Type")?.startsWith("text/plain");
    throw new Error((isText && (await response.text())) || player.dataset.failed);
  }

  const heard = () =>
    new Promise((resolve, reject) => Object.assign(player, { onended: resolve, onerror: () => reject(new Error()) }));

  async function read(url) {
    const reading = (current = { url, request: new AbortController() });
    status.textContent = player.dataset.loading;
    mark();
    try {
      let next = load(reading, 0);
      for (let number = 1, sound; (sound = await next) && current === reading; number += 1) {
        next = load(reading, number);
        next.catch(() => {});
        URL.revokeObjectURL(player.src);
        player.src = URL.createObjectURL(sound);
        const end = heard();
        await Promise.all([player.play(), end]);
      }
      if (current === reading) stop();
    } catch (error) {
      if (current === reading) fail(error.name === "Error" && error.message ? error.message : player.dataset.failed);
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-speech]");
    if (!button) return;
    const { speech } = button.dataset;
    const isOn = speech === current?.url;
    stop();
    if (!isOn) read(speech);
  });
  // A footer that is replaced has a new button.
  document.addEventListener("htmx:load", mark);
})();
