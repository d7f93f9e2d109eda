"""Errors of conversations, each with a sentence for the person and the facts its handler needs.

ChatError
├── PermissionDeniedError  the person may read the object, but not do this with it
├── InvalidMessageError    what was sent cannot be taken as it is; the text stays with the person
├── ConflictError          the state of the turn or thread does not allow it now
│   └── ThreadBusyError    an answer is being written in the thread
└── ModelError             the model endpoint did not answer as it should; `code` says how
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from memory.errors import CatoError, InvalidInputError


class ChatError(CatoError):
    """The root of the errors of conversations."""


class PermissionDeniedError(ChatError):
    """The person may read the object, so saying that they may not change it reveals nothing."""


class InvalidMessageError(ChatError, InvalidInputError):
    """A message, command, title or picture cannot be taken; `suggestion` is what the person may have meant, or empty."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion


class ConflictError(ChatError):
    """The state of the turn or thread does not allow this now."""


class ThreadBusyError(ConflictError):
    """An answer is being written in the thread, or is queued there."""

    def __init__(self) -> None:
        super().__init__(_("An answer is in progress. Stop it or wait for it to finish."))


class ModelError(ChatError):
    """`code` is one of unreachable, timeout, rate_limited, refused, rejected, broken, cut, empty."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code
