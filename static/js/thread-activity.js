// Says above the composer who is typing and whose question is being answered, and tells others that one is typing.
(() => {
  const line = document.getElementById("activity");
  const form = document.getElementById("composer");
  if (!line || !form) return;
  const SHOWN = 6000; // milliseconds after the last key
  const PAUSE = 3000; // milliseconds between two messages to the others
  const self = document.body.dataset.person;
  const typing = new Map();
  const announced = new Set();
  let socket = null;
  let toldAt = -PAUSE;
  let answering = null;

  const fill = (text, ...words) => words.reduce((filled, word) => filled.replace("*", () => word), text);

  function renderTyping() {
    const now = performance.now();
    for (const [person, { until }] of typing) if (until < now) typing.delete(person);
    const names = [...typing.values()].map(({ name }) => name);
    const { one, two, many } = line.dataset;
    const [text, ...words] = names.length > 2 ? [many, names.length] : [names.length > 1 ? two : one, ...names];
    line.querySelector("[data-typing]").textContent = names.length ? fill(text, ...words) : "";
  }

  function renderAnswering() {
    const button = document.querySelector("[data-stops-turn]");
    const isOthers = button && button.dataset.asker !== self;
    if (!isOthers) answering = null;
    else if (answering?.turn !== button.dataset.stopsTurn) {
      answering = { turn: button.dataset.stopsTurn, since: performance.now() };
    }
    const name = answering && document.getElementById(answering.turn)?.querySelector(".turn__author").textContent;
    const seconds = answering && Math.round((performance.now() - answering.since) / 1000);
    line.querySelector("[data-answering]").textContent = name
      ? fill(line.dataset.answering, name + "\u200e").replace("#", seconds)
      : "";
  }

  document.addEventListener("htmx:wsOpen", (event) => (socket = event.detail.socketWrapper));
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    const { id } = event.detail.target;
    if (id === "typing") {
      const { person, name } = document.getElementById("typing").dataset;
      if (person !== self) typing.set(person, { name, until: performance.now() + SHOWN });
    } else if (id === "turns") {
      const arrived = document.querySelector("#turns > .turn:last-of-type");
      typing.delete(arrived.dataset.author);
      if (arrived.dataset.author !== self && !announced.has(arrived.id)) {
        const region = document.getElementById("live-region");
        const name = arrived.querySelector(".turn__author")?.textContent ?? "";
        region.textContent = fill(region.dataset.newMessage, name);
      }
      announced.add(arrived.id);
    }
    renderTyping();
  });
  setInterval(() => {
    renderTyping();
    renderAnswering();
  }, 500);

  form.addEventListener("submit", () => (toldAt = -PAUSE));
  form.addEventListener("input", (event) => {
    if (event.target.id !== "message" || !event.target.value.trim() || performance.now() - toldAt < PAUSE) return;
    toldAt = performance.now();
    socket?.sendImmediately(JSON.stringify({ typing: true }));
  });
})();
