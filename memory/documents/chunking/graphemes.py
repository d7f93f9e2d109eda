"""Grapheme clusters, which readers see as one character and which are never cut."""

from __future__ import annotations

import regex

# Extended grapheme clusters of Unicode annex 29.
_CLUSTER = regex.compile(r"\X")
# Characters before a position in which an obvious border is searched: one between two ASCII characters.
_LOOK_BACK = 32


def is_border(text: str, at: int, since: int) -> bool:
    """Return True if a cluster ends before `text[at]`, given that one begins at `since` <= `at`."""
    return last_border(text, at, since) == at


def last_border(text: str, at: int, since: int) -> int:
    """Return the last border at or before `at`, or `since`."""
    border = _known_border(text, at, since)
    while border < at and (end := _CLUSTER.match(text, border).end()) <= at:
        border = end
    return border


def first_border(text: str, at: int, since: int, until: int) -> int:
    """Return the first border from `at` to `until`, given one at `since`; `until + 1` if there is none."""
    border = _known_border(text, at, since)
    while border < at:
        border = _CLUSTER.match(text, border).end()
    return border if border <= until else until + 1


def _known_border(text: str, at: int, since: int) -> int:
    """Return a border from `since` to `at` that is found without a scan from `since`, if one is near `at`."""
    for border in range(at, max(since, at - _LOOK_BACK), -1):
        pair = text[border - 1 : border + 1]
        if pair.isascii() and pair != "\r\n":
            return border
    return since
