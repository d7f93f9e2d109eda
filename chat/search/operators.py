"""Find what the operators of a search query name: `from:jürgen` a person, `since:june` a day."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext as _

from memory import api as memory

_MAX_NAMES = 5


class Resolved(NamedTuple):
    """The value for the operator's field, or why there is none."""

    value: str = ""
    error: str = ""


def said_between(since: date | None, until: date | None) -> dict[str, datetime]:
    """Return the condition on the dates of exchanges: from `since` to the end of `until`, in the server's time zone."""
    after = until + timedelta(days=1) if until and until < date.max else None
    days = {"$gte": since, "$lt": after}
    return {operator: timezone.make_aware(datetime.combine(day, time.min)) for operator, day in days.items() if day}


def resolve_choice(operator: str, typed: str, choices: Iterable[tuple[Any, Any]]) -> Resolved:
    """Return the id of the only choice with this id or label, or else with a word that begins with it.

    Upper case and accents make no difference. `choices` are pairs of id and label, only of what the person can read.
    """
    wanted = _folded(typed)
    named = [(str(id), str(label)) for id, label in choices if id]
    exact = {id: label for id, label in named if wanted in (_folded(id), _folded(label))}
    found = exact or {id: label for id, label in named if _has_word_beginning(_folded(label), wanted)}
    if len(found) == 1:
        return Resolved(next(iter(found)))
    texts = {"operator": operator, "typed": typed}
    if not found:
        return Resolved(error=_("%(operator)s:%(typed)s matches nothing that you can search.") % texts)
    names = memory.format_list(list(found.values())[:_MAX_NAMES])
    sentence = _("%(operator)s:%(typed)s matches %(names)s. Write more of the name, or choose one below.")
    return Resolved(error=sentence % {**texts, "names": names})


def resolve_date(operator: str, typed: str) -> Resolved:
    """Return the first day of the period for `since`, and the day before it for `before`, in ISO format."""
    if called := memory.day_called(typed, timezone.localdate()):
        return _day(operator, called)
    padded = re.sub(r"-(\d)\b", r"-0\1", typed)
    month = f"{padded}-01" if padded.count("-") == 1 else padded
    # "may" is a month only with a capital letter. A year is one only after "in", and then "/06/14" would be ignored.
    readings = (month, f"in {typed}" if re.fullmatch(r"\d{4}", typed) else typed.capitalize())
    now = timezone.localtime()
    period = next(filter(None, (memory.parse_date_range(reading, now) for reading in readings)), None)
    if period is None:
        sentence = _("%(operator)s:%(typed)s is not a date. Write 2026-06-14, 2026-06, June, 2026 or yesterday.")
        return Resolved(error=sentence % {"operator": operator, "typed": typed})
    return _day(operator, period.start.date())


def _day(operator: str, day: date) -> Resolved:
    return Resolved(str(day if operator == "since" else day - timedelta(days=1)))


def _has_word_beginning(label: str, wanted: str) -> bool:
    return any(label.startswith(wanted, at) for at in range(len(label)) if at == 0 or not label[at - 1].isalnum())


def _folded(text: str) -> str:
    """Return the text in lower case and without accents."""
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in decomposed if not unicodedata.combining(char))
