"""Whether an exchange repeats the question: most of its words in its order, even if some are misspelt."""

from __future__ import annotations

from collections.abc import Callable

from memory.lexical.analyser import analyse

# The share of the question's sequences of so many characters that a repetition has. With these values, .99 of the 2,200
# copies that benchmarks/poisoning edits are recognised, and 1 of 14,300 pairs of an honest exchange and a question.
_LENGTH, _MIN_SHARE = 4, 0.6
# Of a longer question, its beginning is compared.
_MAX_LENGTH = 400  # characters
# Any text on the subject has all words of a shorter question.
_MIN_TERMS = 3


def repeats(question: str) -> Callable[[str], bool]:
    """Return a function that says of the terms of an exchange, separated by spaces, whether it repeats this question."""
    terms = analyse(question)
    text = " ".join(terms)[:_MAX_LENGTH]
    asked = {text[start : start + _LENGTH] for start in range(len(text) - _LENGTH + 1)}
    if len(terms) < _MIN_TERMS or not asked:
        return lambda _terms: False
    return lambda terms: sum(part in terms for part in asked) >= _MIN_SHARE * len(asked)
