"""Parse the date range that a query names, in four languages, with regular expressions."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from memory.retrieval.candidates import Candidate

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero",
            "february feb februar février fevrier febrero",
            "march mar märz maerz mars marzo",
            "april apr avril abril",
            "may mai mayo",
            "june jun juni juin junio",
            "july jul juli juillet julio",
            "august aug août aout agosto",
            "september sept sep septembre septiembre",
            "october oct oktober okt octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember dez décembre decembre diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
# Words that name a month only next to a number, because they have other common meanings.
_AMBIGUOUS = {"may", "march", "mar", "mars"}
_COUNTS = {
    word: count
    for count, words in {
        1: "a an one ein einem einer eine un une uno una",
        2: "two couple zwei deux dos",
        3: "three few drei trois tres",
        4: "four vier quatre cuatro",
        5: "five fünf cinq cinco",
        6: "six sechs seis",
    }.items()
    for word in words.split()
}
_DAYS = {
    word: days
    for days, words in {
        1: "day days tag tage tagen jour jours día días dia dias",
        7: "week weeks woche wochen semaine semaines semana semanas",
        30: "month months monat monate monaten mois mes meses",
        365: "year years jahr jahre jahren an ans année années año años",
    }.items()
    for word in words.split()
}


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_NAME = rf"(?P<month>{_any(_MONTHS)})\b\.?"
_YEAR = r"(?:,?\s*(?:of|de|del)?\s*(?P<year>(?:19|20)\d\d))?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.)?"
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b")
_DOTTED = re.compile(r"\b(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?P<year>(?:19|20)\d\d)?")
_DAY_MONTH = re.compile(rf"\b{_DAY}\s+(?:of\s+|de\s+)?{_NAME}{_YEAR}", re.IGNORECASE)
_MONTH_DAY = re.compile(rf"\b{_NAME}\s+{_DAY}\b{_YEAR}", re.IGNORECASE)
_MONTH = re.compile(rf"\b{_NAME}{_YEAR}", re.IGNORECASE)
_ONLY_YEAR = re.compile(
    r"\b(?:in|of|during|since|im|jahr|jahre|seit|en|depuis|desde)\s+(?P<year>20\d\d)\b", re.IGNORECASE
)
_AGO = re.compile(
    rf"\b(?:(?:vor|il y a|hace)\s+)?(?P<count>\d+|{_any(_COUNTS)})(?:\s+of)?\s+(?P<unit>{_any(_DAYS)})(?P<ago>\s+ago)?\b",
    re.IGNORECASE,
)
_LAST = re.compile(
    rf"\b(?:last|past|previous|letzte[nrms]?|vergangene[nrms]?|vorige[nrms]?)\s+(?P<unit>{_any(_DAYS)})\b"
    rf"|\b(?P<unit2>{_any(_DAYS)})\s+(?:dernier|dernière|passée?|pasad[oa])\b",
    re.IGNORECASE,
)
_YESTERDAY = re.compile(r"\b(?:yesterday|gestern|hier soir|ayer)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DateRange:
    """A period in UTC; the end is exclusive."""

    start: datetime
    end: datetime


def parse_date_range(text: str, now: datetime) -> DateRange | None:
    """Return the first date range named in `text`, or None; a month without a year is the latest that has begun."""
    for pattern in (_ISO, _DOTTED, _DAY_MONTH, _MONTH_DAY, _MONTH):
        for match in pattern.finditer(text):
            found = _from_parts(match, now)
            if found:
                return found
    if in_year := _ONLY_YEAR.search(text):
        year = int(in_year["year"])
        return DateRange(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))
    return _relative(text, now)


def boost_date_range(candidates: list[Candidate], period: DateRange | None, *, weight: float = 1.0) -> None:
    """Raise the scores of exchanges from `period`, and less the later they are in the two weeks after it.

    People discuss an event on its day or shortly after, rarely before.
    """
    if period is None:
        return
    for candidate in candidates:
        candidate.score += weight * max(candidate.score, 0.0) * _affinity(candidate.timestamp, period)


def _affinity(timestamp: datetime, period: DateRange) -> float:
    if period.start - timedelta(days=1) <= timestamp <= period.end:
        return 1.0
    return max(0.0, 1 - (timestamp - period.end) / timedelta(days=14)) if timestamp > period.end else 0.0


def _from_parts(match: re.Match[str], now: datetime) -> DateRange | None:
    parts = match.groupdict()
    name = parts["month"].lower()
    month = int(name) if name.isdigit() else _MONTHS[name]
    if name in _AMBIGUOUS and not (
        parts.get("day") or parts.get("year") or (name == "may" and match["month"] == "May")
    ):
        return None
    if not 1 <= month <= 12:
        return None
    year = int(parts["year"]) if parts.get("year") else now.year - (month > now.month)
    days = calendar.monthrange(year, month)[1]
    if parts.get("day") is None:
        start = datetime(year, month, 1, tzinfo=UTC)
        return DateRange(start, start + timedelta(days=days))
    day = int(parts["day"])
    if not 1 <= day <= days:
        return None
    start = datetime(year, month, day, tzinfo=UTC)
    return DateRange(start, start + timedelta(days=1))


def _relative(text: str, now: datetime) -> DateRange | None:
    if _YESTERDAY.search(text):
        return DateRange(now - timedelta(days=2), now)
    for match in _AGO.finditer(text):
        if not (match["ago"] or match[0].lower().startswith(("vor", "il y a", "hace"))):
            continue
        count = match["count"].lower()
        span = _DAYS[match["unit"].lower()]
        middle = now - timedelta(days=span * (int(count) if count.isdigit() else _COUNTS[count]))
        slack = timedelta(days=max(1.0, span / 2))
        return DateRange(middle - slack, middle + slack)
    if last := _LAST.search(text):
        span = _DAYS[(last["unit"] or last["unit2"]).lower()]
        return DateRange(now - timedelta(days=2 * span), now)
    return None
