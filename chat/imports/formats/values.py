"""Values of a file that anybody may have written: each is of the type asked for, or as good as not there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from memory.api import clean_text

Fields = dict[str, Any]

_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
# Seconds since 1970 stay below this until the year 5138; milliseconds are above it since 1973.
_MILLISECONDS_FROM = 100_000_000_000


def text_in(value: object) -> str:
    """The text, cleaned as every text is; "" for what is none."""
    return clean_text(value) if isinstance(value, str) else ""


def name_in(value: object) -> str:
    """An id, which may be a number too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_in(value)


def fields_in(value: object) -> Fields:
    """The object's fields."""
    return value if isinstance(value, dict) else {}


def rows_in(value: object) -> list[Fields]:
    """The objects among the members of a list."""
    return [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []


def moment_in(value: object) -> datetime | None:
    """The UTC time: seconds or milliseconds since 1970, or ISO 8601, without a zone UTC.

    None for anything else, and for a time before 1990 or after tomorrow: a clock was wrong.
    """
    try:
        moment = _moment(value)
    except (ValueError, OverflowError, OSError):
        return None
    if moment is None or not _EARLIEST <= moment <= timezone.now() + timedelta(days=1):
        return None
    return moment


def _moment(value: object) -> datetime | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS_FROM else value, UTC)
    if not isinstance(value, str):
        return None
    moment = datetime.fromisoformat(value.strip())
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
