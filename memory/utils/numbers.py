"""Read numbers that clients send."""

from __future__ import annotations


def parse_number(text: str) -> int | None:
    """Return a whole number of at most nine digits, None for any other text.

    Python raises ValueError for thousands of digits, and databases for numbers that their columns cannot store.
    """
    return int(text) if text.isdecimal() and len(text) < 10 else None
