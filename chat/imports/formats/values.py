"""Conversion of untrusted JSON values; a value of another type counts as missing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from memory.api import clean_text

Fields = dict[str, Any]

_EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
# Seconds since 1970 are below this until the year 5138; milliseconds are above it since 1973.
_MILLISECONDS_FROM = 100_000_000_000


def text_in(value: object) -> str:
    """Return the cleaned text; "" for another type."""
    return clean_text(value) if isinstance(value, str) else ""


def name_in(value: object) -> str:
    """Return an id, which can be an integer, as text."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_in(value)


def fields_in(value: object) -> Fields:
    """Return the object; {} for another type."""
    return value if isinstance(value, dict) else {}


def rows_in(value: object) -> list[Fields]:
    """Return the objects in a list; [] for another type."""
    return [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []


def moment_in(value: object) -> datetime | None:
    """Parse seconds or milliseconds since 1970, or ISO 8601 (UTC by default), as a time in UTC.

    Return None for anything else, and for implausible times before 1990 or after tomorrow.
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
