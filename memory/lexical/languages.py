"""Name the language of a text for people, only where that is certain."""

from __future__ import annotations

import re
from collections import Counter

from memory.lexical.analyser import words_at
from memory.lexical.stop_words import STOP_WORDS

# Scripts of one language, by its code. Han without kana is Chinese; Cyrillic and Arabic write many languages.
_SCRIPTS = (
    ("ja", re.compile(r"[\u3041-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u3400-\u9fff]")),
    ("th", re.compile(r"[\u0e01-\u0e5b]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("he", re.compile(r"[\u05d0-\u05ea]")),
)
_STOP_WORDS = {"en": "english", "de": "german", "fr": "french", "es": "spanish"}
# A language is certain from this many of its stop words on, and twice as many as of any other.
_MIN_STOP_WORDS = 2
# Characters of a text that are looked at.
_MAX_LENGTH = 2000


def certain_language(text: str) -> str:
    """Return the code of the language of `text`, one of ten; empty if it is another one or not certain."""
    text = text[:_MAX_LENGTH]
    letters = sum(map(str.isalpha, text))
    for code, script in _SCRIPTS:
        # A name or a formula in another script does not make the language.
        if len(script.findall(text)) > letters / 4:
            return code
    words = [text[start:end].casefold() for start, end in words_at(text)]
    counts = Counter({code: sum(word in STOP_WORDS[name] for word in words) for code, name in _STOP_WORDS.items()})
    (best, count), (_second, next_count) = counts.most_common(2)
    return best if count >= _MIN_STOP_WORDS and count >= 2 * next_count else ""
