"""Compare texts in any case on both databases."""

from __future__ import annotations

import re

from django.db.models import Q


def contains(field: str, text: str) -> Q:
    """Return the condition that the field contains the text, in any case.

    SQLite's LIKE ignores the case of ASCII letters only; its regular expressions take several times as long.
    """
    return Q(**{f"{field}__icontains": text}) if text.isascii() else Q(**{f"{field}__iregex": re.escape(text)})
