"""Whether a text states a date, by name or relative to the day on which it was written, in eleven languages.

It is lenient: the model computed the date, and only one that the text cannot mean is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from memory.retrieval.date_words import (
    COUNTS,
    DAYS,
    WIDE_DAYS,
    WIDE_NUMBERS,
    alternatives,
    days_in,
    key_of,
    read_count,
)
from memory.retrieval.dates import DateRange, relative_period, split_dates

_SENTENCE = re.compile(r"[^.!?\n。！？]+")
# English, German, French, Spanish, Italian, Portuguese, Dutch, Polish, Russian; then Chinese and Japanese.
_TOMORROW = re.compile(
    r"\b(?:tomorrow|(?:über)?morgen|(?:après-)?demain|mañana|domani|dopodomani|amanhã|overmorgen|(?:po)?jutr\w+|"
    r"(?:после)?завтра)\b"
    r"|明天|后天|後天|明日|明後日|あした|あさって",
    re.IGNORECASE,
)
_UNIT = alternatives(DAYS)
_NEXT = re.compile(
    rf"\b(?:next|coming|nächste[nrms]?|kommende[nrms]?|volgende?|komende?|prossim[oa]|próxim[oa]|następn\w+|przyszł\w+|"
    rf"следующ\w+|будущ\w+)\s+(?P<unit>{_UNIT})\b"
    rf"|\b(?P<unit2>{_UNIT})\s+(?:prochaine?|suivante?|prossim[oa]|que\s+viene|próxim[oa]|que\s+vem)\b"
    r"|(?:下个?|下個?|来)(?P<wide>周|週|星期|礼拜|月)|(?P<wide2>[明来]年)",
    re.IGNORECASE,
)
_IN = re.compile(
    rf"\b(?:in|dans|en|dentro\s+de|tra|fra|em|daqui\s+a|over|za|через)\s+"
    rf"(?:(?P<count>\d{{1,3}}|{alternatives(COUNTS)})\s+)?(?P<unit>{_UNIT})\b"
    rf"|(?P<wide_count>\d{{1,3}}|{alternatives(WIDE_NUMBERS)})(?P<wide>{alternatives(WIDE_DAYS)})(?:之?后|以后|之?後|以後)",
    re.IGNORECASE,
)
_WEEKDAYS = {
    name: day
    for day, names in enumerate(
        (
            "monday mon montag lundi lunes lunedì segunda segunda-feira maandag poniedziałek poniedziałku понедельник "
            "понедельника 周一 週一 星期一 礼拜一 月曜",
            "tuesday tue dienstag mardi martes martedì terça terça-feira dinsdag wtorek wtorku вторник вторника 周二 週二 "
            "星期二 礼拜二 火曜",
            "wednesday wed mittwoch mercredi miércoles mercoledì quarta quarta-feira woensdag środa środę środy среда "
            "среду среды 周三 週三 星期三 礼拜三 水曜",
            "thursday thu donnerstag jeudi jueves giovedì quinta quinta-feira donderdag czwartek czwartku четверг "
            "четверга 周四 週四 星期四 礼拜四 木曜",
            "friday fri freitag vendredi viernes venerdì sexta sexta-feira vrijdag piątek piątku пятница пятницу "
            "пятницы 周五 週五 星期五 礼拜五 金曜",
            "saturday sat samstag sonnabend samedi sábado sabato zaterdag sobota sobotę soboty суббота субботу "
            "субботы 周六 週六 星期六 礼拜六 土曜",
            "sunday sun sonntag dimanche domingo domenica zondag niedziela niedzielę niedzieli воскресенье "
            "воскресенья 周日 周天 週日 星期日 星期天 礼拜天 日曜",
        )
    )
    for name in names.split()
}
_WEEKDAY = re.compile(
    "|".join(rf"\b{name}\b" if name[0] < "\u3000" else name for name in sorted(_WEEKDAYS, key=len, reverse=True)),
    re.IGNORECASE,
)


def states_date(text: str, said_at: datetime, date: DateRange) -> bool:
    """Return whether a text that was written at `said_at` can mean this day or month."""
    if date.start <= said_at < date.end:
        return True
    named, _rest = split_dates(text, said_at)
    # A date without a year is read as a past one. It may be the next one, too.
    named += [later for each in named if (later := _next_year(each))]
    if any(date.start <= each.start and each.end <= date.end for each in named):
        return True
    return any(
        period.start < date.end and date.start <= period.end
        for sentence in _SENTENCE.findall(text)
        for period in _relative_periods(sentence, said_at)
    )


def _relative_periods(sentence: str, said_at: datetime) -> Iterator[DateRange]:
    if past := relative_period(sentence, said_at):
        yield past
    today = said_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    if _TOMORROW.search(sentence):
        yield DateRange(today, today + timedelta(days=2))
    for match in _NEXT.finditer(sentence):
        # In "明年" and "来年", "next" and the unit are one word.
        days = 365 if match["wide2"] else days_in(match["unit"] or match["unit2"] or match["wide"])
        yield DateRange(today, today + timedelta(days=2 * days))
    for match in _IN.finditer(sentence):
        count = read_count(match["count"] or match["wide_count"] or "1")
        days = days_in(match["unit"] or match["wide"])
        middle, slack = today + timedelta(days=count * days), timedelta(days=days / 2)
        yield DateRange(middle - slack, middle + slack)
    for match in _WEEKDAY.finditer(sentence):
        # The last one or the next one, also "Friday next week".
        to_next = timedelta(days=(_WEEKDAYS[key_of(match.group())] - today.weekday()) % 7)
        for start in (today + to_next + timedelta(days=days) for days in (-7, 0, 7)):
            yield DateRange(start, start)


def _next_year(date: DateRange) -> DateRange | None:
    try:
        return DateRange(date.start.replace(year=date.start.year + 1), date.end.replace(year=date.end.year + 1))
    except ValueError:  # 29 February
        return None
