"""Parse the date range that a query names, in eleven languages, with regular expressions."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from memory.retrieval.candidates import Candidate
from memory.retrieval.date_words import (
    AGO_AFTER,
    AGO_BEFORE,
    AMBIGUOUS,
    COUNTS,
    DAYS,
    LAST_AFTER,
    LAST_BEFORE,
    MONTHS,
    TODAY,
    WIDE_AGO,
    WIDE_DATE,
    WIDE_LAST,
    WIDE_NUMBERS,
    WIDE_TODAY,
    WIDE_YESTERDAY,
    YESTERDAY,
    alternatives,
    days_in,
    key_of,
    read_count,
)

# More than this many units ago, nothing was stored, and dates end at the year 1.
_MAX_COUNT = 100
_NAME = rf"(?P<month>{alternatives(MONTHS)})\b\.?"
# Possessive, since several runs of spaces that can share theirs take quadratic time.
_YEAR = r"(?:,?\s*+(?:(?:of|de|del|di)\b\s*+)?(?P<year>(?:19|20)\d\d))?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.)?"
_ISO = re.compile(r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b")
_DOTTED = re.compile(r"\b(?P<day>\d{1,2})\.\s?(?P<month>\d{1,2})\.(?P<year>(?:19|20)\d\d)?")
_DAY_MONTH = re.compile(rf"\b{_DAY}\s+(?:of\s+|de\s+|di\s+)?{_NAME}{_YEAR}", re.IGNORECASE)
_MONTH_DAY = re.compile(rf"\b{_NAME}\s+{_DAY}\b{_YEAR}", re.IGNORECASE)
_MONTH = re.compile(rf"\b{_NAME}{_YEAR}", re.IGNORECASE)
_ONLY_YEAR = re.compile(
    r"\b(?:in|of|during|since|im|jahr|jahre|seit|en|depuis|desde)\s+(?P<year>20\d\d)\b", re.IGNORECASE
)
_AGO = re.compile(
    rf"\b(?P<before>(?:{AGO_BEFORE})\s+)?(?:(?P<count>\d{{1,4}}|{alternatives(COUNTS)})(?:\s+of)?\s+)?"
    rf"(?P<unit>{alternatives(DAYS)})(?P<after>\s+(?:{AGO_AFTER}))?\b",
    re.IGNORECASE,
)
LAST = re.compile(
    rf"\b(?:{LAST_BEFORE})\s+(?P<unit>{alternatives(DAYS)})\b|\b(?P<unit2>{alternatives(DAYS)})\s+(?:{LAST_AFTER})\b",
    re.IGNORECASE,
)
_LAST_MONTH = re.compile(rf"\b(?P<last>{LAST_BEFORE})\s+{_NAME}", re.IGNORECASE)
# Dates, the most specific first.
_NAMED = (_ISO, _DOTTED, WIDE_DATE, _DAY_MONTH, _MONTH_DAY, _LAST_MONTH, _MONTH)
_TODAY = re.compile(rf"\b(?:{TODAY})\b", re.IGNORECASE)
_YESTERDAY = re.compile(rf"\b(?:{YESTERDAY})\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DateRange:
    """A period in UTC; the end is exclusive."""

    start: datetime
    end: datetime


def parse_date_range(text: str, now: datetime) -> DateRange | None:
    """Return the first date range named in `text`, or None; a month without a year is the latest that has begun."""
    if named := first_named_date(text, now):
        return named
    if in_year := _ONLY_YEAR.search(text):
        year = int(in_year["year"])
        return DateRange(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))
    return relative_period(text, now)


def day_called(word: str, today: date) -> date | None:
    """Return the day that is called "today" or "yesterday" in one of the languages, None for any other word.

    In a message, "yesterday" is a period of about two days, because nobody knows when the writer's day began.
    """
    if _TODAY.fullmatch(word) or WIDE_TODAY.fullmatch(word):
        return today
    if _YESTERDAY.fullmatch(word) or WIDE_YESTERDAY.fullmatch(word):
        return today - timedelta(days=1)
    return None


def split_dates(text: str, now: datetime) -> tuple[list[DateRange], str]:
    """Return all days and months that the text names, and the text without them."""
    found = []
    for pattern in _NAMED:
        rest, end = [], 0
        for match in pattern.finditer(text):
            if date := _from_parts(match, now):
                found.append(date)
                rest.append(text[end : match.start()])
                end = match.end()
        text = " ".join([*rest, text[end:]])
    return found, text


def first_named_date(text: str, now: datetime) -> DateRange | None:
    """Return the most specific day or month that the text names, and of those the first; None if it names none."""
    dates = (_from_parts(match, now) for pattern in _NAMED for match in pattern.finditer(text))
    return next((date for date in dates if date), None)


def boost_date_range(candidates: list[Candidate], period: DateRange | None) -> None:
    """Raise the scores of exchanges from `period`, and less the later they are in the two weeks after it.

    People discuss an event on its day or shortly after, rarely before.
    """
    if period is None:
        return
    for candidate in candidates:
        candidate.score += max(candidate.score, 0.0) * _affinity(candidate.timestamp, period)


def _affinity(timestamp: datetime, period: DateRange) -> float:
    if period.start - timedelta(days=1) <= timestamp <= period.end:
        return 1.0
    return max(0.0, 1 - (timestamp - period.end) / timedelta(days=14)) if timestamp > period.end else 0.0


def _from_parts(match: re.Match[str], now: datetime) -> DateRange | None:
    parts = match.groupdict()
    name = key_of(parts["month"])
    month = int(name) if name.isdigit() else MONTHS.get(name) or WIDE_NUMBERS[name]
    if name in AMBIGUOUS and not (
        parts.get("day") or parts.get("year") or parts.get("last") or (name == "may" and match["month"] == "May")
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


def relative_period(text: str, now: datetime) -> DateRange | None:
    """Return the period that a relative expression such as "last week" names in a text written at `now`, or None."""
    if _YESTERDAY.search(text) or WIDE_YESTERDAY.search(text):
        return DateRange(now - timedelta(days=2), now)
    for match in _AGO.finditer(text):
        if match["after"] or (match["before"] and match["count"]):
            return _ago(read_count(match["count"] or "1"), days_in(match["unit"]), now)
    if ago := WIDE_AGO.search(text):
        return _ago(read_count(ago["count"]), days_in(ago["unit"]), now)
    if last := LAST.search(text) or WIDE_LAST.search(text):
        return _last(days_in(last["unit"] or last["unit2"]), now)
    return None


def _ago(count: int, days: int, now: datetime) -> DateRange:
    """Return the period `count` units of so many days ago, of about one unit."""
    middle = now - timedelta(days=days * min(count, _MAX_COUNT))
    slack = timedelta(days=max(1.0, days / 2))
    return DateRange(middle - slack, middle + slack)


def _last(days: int, now: datetime) -> DateRange:
    """Return the period of the last unit of so many days, which may have ended at any time since."""
    return DateRange(now - timedelta(days=2 * days), now)
