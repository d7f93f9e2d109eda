"""The period about which a message asks what happened in it, with exact borders; `dates.py` reads dates for a search.

A question for something that somebody remembers has a vague date, so there a period is wide. Here it is a list of days.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from memory.retrieval.date_words import (
    COUNTS,
    DAYS,
    IN_THE_LAST,
    SINCE,
    THIS,
    TODAY,
    WEEKDAYS,
    WIDE_IN_THE_LAST,
    WIDE_LAST,
    WIDE_SINCE,
    WIDE_THIS,
    WIDE_TODAY,
    WIDE_WEEKDAY,
    WIDE_WEEKDAYS,
    WIDE_YESTERDAY,
    YESTERDAY,
    alternatives,
    days_in,
    key_of,
    read_count,
)
from memory.retrieval.dates import LAST, DateRange, day_called, first_named_date

_DAY_WORD = re.compile(rf"\b(?:{TODAY}|{YESTERDAY})\b|{WIDE_TODAY.pattern}|{WIDE_YESTERDAY.pattern}", re.IGNORECASE)
_UNIT = alternatives(DAYS)
_COUNT = rf"\d{{1,2}}|{alternatives(COUNTS)}"
_COUNTED = re.compile(
    rf"\b(?:{IN_THE_LAST})\s+(?P<count>{_COUNT})\s+(?P<unit>{_UNIT})\b"
    rf"|\b(?P<count2>{_COUNT})\s+(?:{IN_THE_LAST})\s+(?P<unit2>{_UNIT})\b",
    re.IGNORECASE,
)
_THIS = re.compile(rf"\b(?:{THIS})\s+(?P<unit>{_UNIT})\b", re.IGNORECASE)
_WEEKDAY = re.compile(rf"\b(?P<day>{alternatives(WEEKDAYS)})\b", re.IGNORECASE)
_SINCE = re.compile(rf"\b(?:{SINCE})\b", re.IGNORECASE)


def named_period(text: str, now: datetime) -> DateRange | None:
    """Return the days that the text names, at most until `now`; None if it names none.

    The borders are midnights in the time zone of `now`. With a word for "since", the period ends now.
    """
    found = _days(text, now)
    if found is None:
        return None
    start, end = found
    goes_on = _SINCE.search(text) or WIDE_SINCE.search(text)
    return DateRange(start, now if goes_on else min(end, now))


def _days(text: str, now: datetime) -> tuple[datetime, datetime] | None:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if word := _DAY_WORD.search(text):
        day = day_called(word.group(), midnight.date())
        start = midnight if day == midnight.date() else midnight - timedelta(days=1)
        return start, start + timedelta(days=1)
    if found := _COUNTED.search(text) or WIDE_IN_THE_LAST.search(text):
        count, unit = found["count"] or found["count2"], found["unit"] or found["unit2"]
        return midnight - timedelta(days=read_count(count) * days_in(unit)), now
    if found := _THIS.search(text) or WIDE_THIS.search(text):
        return _unit_start(days_in(found["unit"]), midnight), now
    if found := LAST.search(text) or WIDE_LAST.search(text):
        days = days_in(found["unit"] or found["unit2"])
        end = _unit_start(days, midnight)
        return _unit_start(days, end - timedelta(days=1)), end
    if (weekday := _weekday(text)) is not None:
        start = midnight - timedelta(days=(midnight.weekday() - weekday) % 7)
        return start, start + timedelta(days=1)
    named = first_named_date(text, now)
    return (named.start, named.end) if named else None


def _unit_start(days: int, midnight: datetime) -> datetime:
    """Return the beginning of the day, week, month or year with so many days in which `midnight` is."""
    if days == 1:
        return midnight
    if days == 7:
        return midnight - timedelta(days=midnight.weekday())
    return midnight.replace(day=1) if days == 30 else midnight.replace(month=1, day=1)


def _weekday(text: str) -> int | None:
    """Return the day of the week that the text names, 0 for Monday."""
    if found := WIDE_WEEKDAY.search(text):
        return WIDE_WEEKDAYS[found["day"] or found["day_ja"]]
    return WEEKDAYS[key_of(found["day"])] if (found := _WEEKDAY.search(text)) else None
