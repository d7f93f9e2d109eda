"""What can go wrong in memory: each error is a sentence for a person, and the one fact its catcher needs.

CatoMemoryError
├── NotFound             not there, or not yours: both sound the same
├── BadQuery             the question, id or argument cannot be worked with
│   ├── RecordConflictError    a record with this id belongs to another person
│   └── DocumentConflictError  a document with this name belongs to another person
├── StoreDisabled        vector_store.enabled is false
├── StoreDown            the vector store cannot be reached; try again later
│   └── StoreRefusedError  it answers, but refused this request; the same request would be refused again
├── CannotRead           a file gives no text; the message says why, to the person who uploaded it
└── EmbeddingFailed      permanent: trying again is pointless; is_about_input: the provider refused one of the texts;
    │                    retry_after: seconds, if the provider said so
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


class TooManySearchesError(BadQuery):
    """More searches in a minute than one person may make."""


class RecordConflictError(BadQuery):
    """Another person stored a record under an id that was sent; nothing was written."""


class DocumentConflictError(BadQuery):
    """Another person owns the document of this name; nothing was written."""


class StoreDisabled(CatoMemoryError):
    """The vector store is switched off in the configuration."""

    def __init__(self, message: str = DISABLED) -> None:
        super().__init__(message)


class StoreDown(CatoMemoryError):
    """The vector store cannot be reached."""

    def __init__(self, message: str = "The vector store cannot be reached.") -> None:
        super().__init__(message)


class StoreRefusedError(StoreDown):
    """The vector store answers, but refused this request, which it would refuse again.

    Searching treats it as any StoreDown; jobs count it as their own failure.
    """


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
    in seconds. `is_about_input`: the provider refused the texts themselves, so others may succeed without them.
    """

    def __init__(
        self, message: str, permanent: bool, retry_after: float | None = None, is_about_input: bool = False
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.retry_after = retry_after
        self.is_about_input = is_about_input


class WrongDimension(EmbeddingFailed):
    """The vectors are not as long as those of the index they should go into."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=True)
