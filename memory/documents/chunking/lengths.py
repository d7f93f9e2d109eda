"""Lengths of text as embedding models count them: a character of Chinese, Japanese or Korean counts as several.

multilingual-e5-small reads 512 tokens, of which 8 are not of the text. A token has 4.2 characters in English and 4.4 in
German prose, 3.3 in technical text and source code (2.8 in a tenth of it), 1.5 in Chinese and 1.8 in Japanese.
"""

from __future__ import annotations

import re

# The length that multilingual-e5-small reads whole.
MODEL_LENGTH = 1250
# Ideographs, kana, Hangul and full-width forms; no emoji.
_WIDE = re.compile("[\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]+")
_LENGTH_OF_A_WIDE_ONE = 2.25


def length(text: str, start: int, end: int) -> float:
    """Return the length of `text[start:end]`."""
    wide = sum(map(len, _WIDE.findall(text, start, end)))
    return end - start + wide * (_LENGTH_OF_A_WIDE_ONE - 1)


def fits(text: str, start: int, end: int, size: int) -> bool:
    """Return True if `text[start:end]` has at most the length `size` or one character."""
    characters = end - start
    return characters <= size and (characters <= 1 or length(text, start, end) <= size)


def reach(text: str, start: int, size: int) -> int:
    """Return the last end for which `text[start:end]` fits, possibly beyond the end of the text."""
    return start + _count_fitting(text[start : start + size], size)


def reach_back(text: str, end: int, size: int) -> int:
    """Return the first start for which `text[start:end]` fits, possibly negative."""
    return end - _count_fitting(text[max(0, end - size) : end][::-1], size)


def _count_fitting(text: str, size: int) -> int:
    """Return how many characters fit, of a text that has at most `size`; `size` if all do."""
    if _WIDE.search(text) is None:
        return size
    room = float(size)
    for count, char in enumerate(text):
        room -= _LENGTH_OF_A_WIDE_ONE if _WIDE.match(char) else 1
        if room < 0:
            return max(count, 1)
    return size
