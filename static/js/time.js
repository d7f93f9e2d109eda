// Turns each moment on the page into the reader's own words and zone; the exact one stays as a tooltip.
(() => {
  const isEnglish = document.documentElement.lang === "en";
  const locale = isEnglish ? "en-GB" : document.documentElement.lang;
  const hour = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
  const day = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
  const year = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric" });
  const exact = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "long" });

  function words(then, shape) {
    const now = new Date();
    if (shape === "date") return year.format(then);
    const date = then.getFullYear() === now.getFullYear() ? day.format(then) : year.format(then);
    if (shape === "day") return date;
    return then.toDateString() === now.toDateString() ? hour.format(then) : `${date}${isEnglish ? "" : ","} ${hour.format(then)}`;
  }

  function localise(root) {
    const found = root.matches?.("time[datetime]") ? [root] : root.querySelectorAll("time[datetime]");
    for (const time of found) {
      const then = new Date(time.dateTime);
      if (Number.isNaN(then.getTime())) continue;
      time.textContent = words(then, time.dataset.shape);
      time.title = exact.format(then);
    }
  }

  localise(document);
  document.addEventListener("htmx:load", (event) => localise(event.target));
})();
