"""Format numbers, dates and lists in the language and locale of the installation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from django.utils import formats, timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.errors import ExtractionError, Fact, format_message

# Names of the sources of exchanges.
SOURCES = {
    "chat": gettext_lazy("Conversation"),
    "vadd_command": gettext_lazy("Note"),
    "vdoc_command": gettext_lazy("Document from a folder"),
    "upload": gettext_lazy("Uploaded document"),
    "cli": gettext_lazy("Command line"),
    "import": gettext_lazy("Import"),
    "api": gettext_lazy("API"),
    "knowledge": gettext_lazy("Knowledge"),
}


def source_label(source: str) -> str:
    """Return the name of a source, or what is stored if it is none of them, as in a database of a later version."""
    return str(SOURCES.get(source, source))


def format_number(value: float, decimal_places: int = 0) -> str:
    """Return a number such as 1,204 or 1.204, rounded first because Django truncates decimal places."""
    return formats.number_format(Decimal(f"{value:.{decimal_places}f}"), decimal_places or None, force_grouping=True)


def format_percent(share: float, decimal_places: int = 0) -> str:
    """Return a percentage such as 84.3% or 84,3 %; `share` is a fraction."""
    return _("%(number)s%%") % {"number": format_number(share * 100, decimal_places)}


def format_similarity(similarity: float) -> str:
    """Return .84 in locales with a decimal point, 0,84 in those with a comma."""
    text = format_number(similarity, 2)
    return text.replace("0.", ".", 1) if formats.get_format("DECIMAL_SEPARATOR") == "." else text


def format_date(at: date) -> str:
    """Return a date such as 22 Nov 2026."""
    return formats.date_format(at, "DATE_FORMAT")


def day_text(at: datetime) -> str:
    """Return a date, with its year if that is not the current one."""
    return day_of_this_year(at) if at.year == timezone.now().year else format_date(at)


def day_of_this_year(at: datetime) -> str:
    """Return a date without its year, such as 22 Nov."""
    return formats.date_format(at, "MONTH_DAY_FORMAT")


def format_datetime(at: datetime) -> str:
    """Return a time such as 22 Nov 14:40 UTC; `at` is in UTC."""
    return f"{formats.date_format(at, 'STAMP_FORMAT')} UTC"


def format_moment(at: datetime) -> str:
    """Return a time such as 22 Nov 14:40, as clocks show it in the time zone of `at`."""
    return formats.date_format(at, "STAMP_FORMAT")


def format_remaining(seconds: float | None) -> str:
    """Return the remaining time in words, rounded up; "" if it is unknown."""
    if seconds is None:
        return ""
    minutes = math.ceil(seconds / 60)
    if minutes < 2:
        return _("about a minute left")
    if minutes < 120:
        return _("about %(count)s minutes left") % {"count": format_number(minutes)}
    return _("about %(count)s hours left") % {"count": format_number(math.ceil(minutes / 60))}


def format_list(things: Sequence[str], *, last: str = "") -> str:
    """Return a list such as "one, two and three"; `last` replaces "and"."""
    if len(things) < 2:
        return "".join(things)
    before_last = last or _("and")
    return f"{', '.join(things[:-1])} {before_last} {things[-1]}"


def error_text(error: ExtractionError) -> str:
    """Return the translated reason why a file gives no text.

    The extractors report errors in English, because they know no other language.
    """
    return format_message(_(error.words), {name: _format_fact(fact) for name, fact in error.facts.items()})


def _format_fact(fact: Fact) -> str:
    if isinstance(fact, int):
        return format_number(fact)
    return _(fact) if isinstance(fact, str) else format_list([_(item) for item in fact])
