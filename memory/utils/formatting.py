"""Numbers and moments as people of the installation's language write them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal

from django.utils import formats
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.errors import ExtractionError, Fact, format_message

FOUND_BY_WORDS = gettext_lazy("The search index does not answer: found by keywords only.")
# How an exchange came into memory.
SOURCES = {
    "chat": gettext_lazy("Conversation"),
    "vadd_command": gettext_lazy("Note"),
    "vdoc_command": gettext_lazy("Document from a folder"),
    "upload": gettext_lazy("Uploaded document"),
    "cli": gettext_lazy("Command line"),
    "import": gettext_lazy("Import"),
    "api": gettext_lazy("API"),
}


def format_number(value: float, places: int = 0) -> str:
    """1,204 or 1.204; Django cuts places off, so the value is rounded before."""
    return formats.number_format(Decimal(f"{value:.{places}f}"), places or None, force_grouping=True)


def format_percent(share: float, places: int = 0) -> str:
    """84.3% or 84,3 %."""
    return _("%(number)s%%") % {"number": format_number(share * 100, places)}


def format_similarity(similarity: float) -> str:
    """.84 where a point separates, 0,84 where a comma does."""
    text = format_number(similarity, 2)
    return text.replace("0.", ".", 1) if formats.get_format("DECIMAL_SEPARATOR") == "." else text


def format_date(at: datetime) -> str:
    """22 Nov 2026."""
    return formats.date_format(at, "DATE_FORMAT")


def day_of_this_year(at: datetime) -> str:
    """22 Nov."""
    return formats.date_format(at, "MONTH_DAY_FORMAT")


def format_datetime(at: datetime) -> str:
    """22 Nov 14:40 UTC; `at` is in UTC."""
    return f"{formats.date_format(at, 'STAMP_FORMAT')} UTC"


def format_list(things: Sequence[str], *, last: str = "") -> str:
    """One, two and three; `last` is another word than "and" before the last."""
    if len(things) < 2:
        return "".join(things)
    before_last = last or _("and")
    return f"{', '.join(things[:-1])} {before_last} {things[-1]}"


def error_text(error: ExtractionError) -> str:
    """Why a file gives no text; the readers say it in English, knowing no other language."""
    return format_message(_(error.words), {name: _shown(fact) for name, fact in error.facts.items()})


def _shown(fact: Fact) -> str:
    if isinstance(fact, int):
        return format_number(fact)
    return _(fact) if isinstance(fact, str) else format_list([_(each) for each in fact])
