"""What can go wrong in memory: each error is a sentence for a person, and the one fact its catcher needs.

CatoMemoryError
├── NotFound             not there, or not yours: both sound the same
├── BadQuery             the question, id or argument cannot be worked with
├── StoreDisabled        vector_store.enabled is false
├── StoreDown            the vector store cannot be reached; try again later
├── CannotRead           a file gives no text; the message says why, to the person who uploaded it
└── EmbeddingFailed      permanent: trying again is pointless; retry_after: seconds, if the provider said so
    └── WrongDimension   the model gives vectors of another length than the index holds
"""

from __future__ import annotations

import re
from collections.abc import Mapping


def gettext_noop(words: str) -> str:
    """Mark a sentence to be translated; this file and the readers know nothing of Django."""
    return words


DISABLED = gettext_noop("The vector store is disabled (vector_store.enabled).")


class CatoMemoryError(Exception):
    """The root of the tree (the plain name is Python's own, for running out of memory)."""


class NotFound(CatoMemoryError):
    """There is no such thing for this person."""


class BadQuery(CatoMemoryError):
    """A query, id or argument that cannot be worked with; the message says what to do."""


class StoreDisabled(CatoMemoryError):
    """The vector store is switched off in the configuration."""

    def __init__(self, message: str = DISABLED) -> None:
        super().__init__(message)


class StoreDown(CatoMemoryError):
    """The vector store cannot be reached."""

    def __init__(self, message: str = "The vector store cannot be reached.") -> None:
        super().__init__(message)


Fact = int | str | list[str]


class CannotRead(CatoMemoryError):
    """There is no text to be had from a file; `facts` stand in the English `words` as %(name)s."""

    def __init__(self, words: str, **facts: Fact) -> None:
        super().__init__(filled(words, {name: _in_english(fact) for name, fact in facts.items()}))
        self.words = words
        self.facts = facts


def filled(words: str, facts: Mapping[str, str]) -> str:
    """The sentence with its facts; words that a reader's process made up do no more than stand there."""
    return re.sub(r"%\((\w+)\)s", lambda found: facts.get(found[1], found[0]), words)


def _in_english(fact: Fact) -> str:
    if isinstance(fact, int):
        return f"{fact:,}"
    return fact if isinstance(fact, str) else f"{', '.join(fact[:-1])} and {fact[-1]}"


class EmbeddingFailed(CatoMemoryError):
    """Texts could not be embedded.

    `permanent` says that the same request would fail again; `retry_after` is the wait the provider asked for,
    in seconds.
    """

    def __init__(self, message: str, permanent: bool, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.retry_after = retry_after


class WrongDimension(EmbeddingFailed):
    """The vectors are not as long as those of the index they should go into."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=True)
