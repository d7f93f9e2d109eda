"""Errors of the services of all three packages, each with a message for people and the data its handler needs.

CatoError
├── NotFoundError        missing, or not readable by this person; the response is the same for both
├── RateLimitedError     more requests within a minute than are allowed
├── InvalidInputError    a query, id or argument that cannot be used
│   ├── InvalidFieldError      the same for the value of one field of a form
│   ├── StatementConflictError a statement was changed by somebody else
│   ├── RecordConflictError    a record with this id belongs to another person
│   └── DocumentConflictError  a document with this name belongs to another person
├── EventsExpiredError   events after this position are not kept any more
├── VectorStoreDisabledError     vector_store.enabled is false
├── VectorStoreUnavailableError  the vector store does not answer; try again later
│   └── VectorStoreRequestError  it answers, but refused this request, and would refuse it again
├── ExtractionError      a file has no readable text; the message says why
└── EmbeddingError       permanent: trying again is pointless; is_about_input: the provider refused one of the texts;
    │                    retry_after: seconds, if the provider said so
    ├── EmbeddingDimensionError  the vectors' length differs from that of the index
    └── EmbeddingModelUnavailableError  the local model is not installed, or one of its files is damaged
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


def gettext_noop(words: str) -> str:
    """Mark a message for translation; this module and the extraction processes do not import Django."""
    return words


STORE_DISABLED = gettext_noop("The vector store is disabled (vector_store.enabled).")


NOT_FOUND = gettext_noop("Not found.")


class CatoError(Exception):
    """Base class of all expected errors; its text is a message for people."""


class NotFoundError(CatoError):
    """An object does not exist, or this person may not read it."""

    def __init__(self, message: str = "") -> None:
        from django.utils.translation import gettext  # extraction processes load this module without Django

        super().__init__(message or gettext(NOT_FOUND))


@dataclass(frozen=True, slots=True)
class RateLimit:
    """How many requests are allowed in a minute, how many are left, and in how many seconds counting begins again."""

    limit: int
    remaining: int
    reset: int


class RateLimitedError(CatoError):
    """More requests within a minute than are allowed. `limit` is that of an API token, if it is exceeded."""

    def __init__(self, message: str = "", limit: RateLimit | None = None) -> None:
        super().__init__(message)
        self.limit = limit


class InvalidInputError(CatoError):
    """A query, id or argument that cannot be used; the message says what to do."""


class InvalidFieldError(InvalidInputError):
    """The value of one `field` of a form cannot be used; the others may be right."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class RecordConflictError(InvalidInputError):
    """Another person stored a record under an id that was sent; nothing was written."""


class DocumentConflictError(InvalidInputError):
    """Another person owns the document of this name; nothing was written."""


class StatementConflictError(InvalidInputError):
    """Somebody changed the statement since it was shown; nothing was written."""


class EventsExpiredError(CatoError):
    """The feed does not have all events after this position any more; the message has the position to continue with."""


class VectorStoreDisabledError(CatoError):
    """The vector store is switched off in the configuration."""

    def __init__(self, message: str = STORE_DISABLED) -> None:
        super().__init__(message)


class VectorStoreUnavailableError(CatoError):
    """The vector store cannot be reached."""

    def __init__(self, message: str = "The vector store cannot be reached.") -> None:
        super().__init__(message)


class VectorStoreRequestError(VectorStoreUnavailableError):
    """The vector store answers, but refused this request and would refuse it again.

    A search handles it like any VectorStoreUnavailableError. A job counts it towards MAX_FAILURES.
    """


Fact = int | str | list[str]


class ExtractionError(CatoError):
    """A file has no readable text. `words` is the English message, in which %(name)s stands for one of `facts`."""

    def __init__(self, words: str, **facts: Fact) -> None:
        super().__init__(format_message(words, {name: _in_english(fact) for name, fact in facts.items()}))
        self.words = words
        self.facts = facts


def format_message(words: str, facts: Mapping[str, str]) -> str:
    """Return the message with its facts; unknown placeholders from an extraction process stay unchanged."""
    return re.sub(r"%\((\w+)\)s", lambda found: facts.get(found[1], found[0]), words)


def _in_english(fact: Fact) -> str:
    if isinstance(fact, int):
        return f"{fact:,}"
    return fact if isinstance(fact, str) else f"{', '.join(fact[:-1])} and {fact[-1]}"


class EmbeddingError(CatoError):
    """Texts could not be embedded.

    `permanent`: the same request would fail again. `retry_after`: delay in seconds that the provider requested.
    `is_about_input`: the provider refused the texts themselves, so other texts may succeed without them.
    """

    def __init__(
        self, message: str, permanent: bool, retry_after: float | None = None, is_about_input: bool = False
    ) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.retry_after = retry_after
        self.is_about_input = is_about_input


class EmbeddingDimensionError(EmbeddingError):
    """The dimension of the vectors differs from that of the index."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=True)


class EmbeddingModelUnavailableError(EmbeddingError):
    """The files of the local model are missing or damaged; embedding waits until it is installed again."""

    def __init__(self, message: str) -> None:
        super().__init__(message, permanent=True)
