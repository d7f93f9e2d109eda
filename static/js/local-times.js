// Shows times in the reader's language and time zone; the tooltip has the exact time.
(() => {
  const isEnglish = document.documentElement.lang === "en";
  const locale = isEnglish ? "en-GB" : document.documentElement.lang;
  const hour = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
  const day = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
  const year = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", year: "numeric" });
  const exact = new Intl.DateTimeFormat(locale, { dateStyle: "full", timeStyle: "long" });

  const days = new Intl.RelativeTimeFormat(locale, { numeric: "auto" });

  function format(moment, shape) {
    const now = new Date();
    const distance = Math.round((new Date(moment).setHours(0, 0, 0, 0) - new Date(now).setHours(0, 0, 0, 0)) / 864e5);
    if (shape === "relative" && (distance === 0 || distance === 1)) {
      return `${days.format(distance, "day")} ${hour.format(moment)}`;
    }
    if (shape === "date") return year.format(moment);
    const date = moment.getFullYear() === now.getFullYear() ? day.format(moment) : year.format(moment);
    if (shape === "day") return date;
    if (moment.toDateString() === now.toDateString()) return hour.format(moment);
    return `${date}${isEnglish ? "" : ","} ${hour.format(moment)}`;
  }

  function localise(root) {
    const times = root.matches?.("time[datetime]") ? [root] : root.querySelectorAll("time[datetime]");
    for (const time of times) {
      const moment = new Date(time.dateTime);
      if (Number.isNaN(moment.getTime())) continue;
      time.textContent = format(moment, time.dataset.shape);
      time.title = exact.format(moment);
    }
  }

  localise(document);
  document.addEventListener("htmx:load", (event) => localise(event.target));
})();
