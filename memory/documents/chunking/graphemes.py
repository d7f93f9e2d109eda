"""Find positions where text can be cut without splitting a character that readers see as one.

This approximates the extended grapheme clusters of Unicode annex 29 with the data of `unicodedata`. Its errors join too
much, except for the few characters that join with what follows (Prepend).
"""

from __future__ import annotations

import unicodedata

_ZWJ = "\u200d"
_VIRAMA = 9  # canonical combining class of signs that join two consonants
# Characters that extend the previous one without being marks: ZWNJ, ZWJ, Thai and Lao am, half-width voicing marks.
_EXTENDERS = frozenset("\u200c\u200d\u0e33\u0eb3\uff9e\uff9f")
# Emoji (those newer than this Python's tables are unassigned) and the letters of Indic conjuncts.
_AFTER_ZWJ = ("So", "Sm", "Cn", "Lo")
_FIRST_JOINING = "\u0300"
# Leading consonants, vowels and trailing consonants of Hangul, and syllables of two (LV) and of three (LVT).
_SYLLABLE_GOES_ON: dict[str, tuple[str, ...]] = {
    "L": ("L", "V", "LV", "LVT"),
    "V": ("V", "T"),
    "LV": ("V", "T"),
    "T": ("T",),
    "LVT": ("T",),
    "": (),
}


def is_border(text: str, at: int, since: int) -> bool:
    """Return True if a cluster ends before `text[at]`, given that one begins at `since` <= `at`."""
    if at <= since or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if before < _FIRST_JOINING and after < _FIRST_JOINING:
        return not (before == "\r" and after == "\n")
    if _is_control(before) or _is_control(after):
        return True
    if _extends(after):
        return False
    if before == _ZWJ:
        return after < _FIRST_JOINING or unicodedata.category(after) not in _AFTER_ZWJ
    if _is_regional(before) and _is_regional(after):
        return _regionals_before(text, at, since) % 2 == 0
    if unicodedata.combining(before) == _VIRAMA and unicodedata.category(after) == "Lo":
        return False
    return _hangul(after) not in _SYLLABLE_GOES_ON[_hangul(before)]


def last_border(text: str, at: int, since: int) -> int:
    """Return the last border at or before `at`, or `since`."""
    while not is_border(text, at, since):
        at -= 1
    return max(at, since)


def first_border(text: str, at: int, since: int, until: int) -> int:
    """Return the first border from `at` to `until`, given one at `since`; `until + 1` if there is none."""
    while at <= until and not is_border(text, at, since):
        at += 1
    return at


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Zl", "Zp")


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char)[0] == "M"
        or char in _EXTENDERS
        or "\U0001f3fb" <= char <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= char <= "\U000e007f"  # tags, as in the flag of Scotland
    )


def _is_regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _regionals_before(text: str, at: int, since: int) -> int:
    start = at
    while start > since and _is_regional(text[start - 1]):
        start -= 1
    return at - start


def _hangul(char: str) -> str:
    if "\uac00" <= char <= "\ud7a3":
        return "LVT" if (ord(char) - 0xAC00) % 28 else "LV"
    if "\u1100" <= char <= "\u115f" or "\ua960" <= char <= "\ua97c":
        return "L"
    if "\u1160" <= char <= "\u11a7" or "\ud7b0" <= char <= "\ud7c6":
        return "V"
    if "\u11a8" <= char <= "\u11ff" or "\ud7cb" <= char <= "\ud7fb":
        return "T"
    return ""
