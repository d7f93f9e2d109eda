"""Errors of conversations, each with a message for the user.

ChatError
├── PermissionDeniedError
├── InvalidMessageError
│   ├── InvalidNameError
│   └── DataPolicyError
├── ConflictError
│   └── ThreadBusyError
├── UsageLimitError
├── ToolServerError
├── WebSearchError
└── ModelError
    └── KeyRefusedError
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from memory.api import CatoError, InvalidInputError


class ChatError(CatoError):
    """The base class of the errors of conversations."""


class PermissionDeniedError(ChatError):
    """The person may read the object, but not change it; other people get NotFoundError."""


class InvalidMessageError(ChatError, InvalidInputError):
    """A message, command, title or image is invalid; `suggestion` is a text for the message field, or empty."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion


class InvalidNameError(InvalidMessageError):
    """A saved prompt cannot have this name."""


class DataPolicyError(InvalidMessageError):
    """The chosen endpoint may not receive the text of a space."""


class ConflictError(ChatError):
    """The state of the turn or thread does not allow this."""


class ThreadBusyError(ConflictError):
    """An answer is running or queued in the thread."""

    def __init__(self) -> None:
        super().__init__(_("An answer is in progress. Stop it or wait for it to finish."))


class UsageLimitError(ChatError):
    """The limit of usage in this month is reached; it resets in `retry_after` seconds."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ToolServerError(ChatError):
    """A tool server or the receiver of a webhook cannot be reached, or its answer cannot be used."""


class WebSearchError(ChatError):
    """The web could not be searched; the message is a reason, after a colon."""


class ModelError(ChatError):
    """The model endpoint failed, or may not be asked.

    `code` is unreachable, timeout, rate_limited, refused, rejected, broken, cut, empty or data_policy.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class KeyRefusedError(ModelError):
    """The model endpoint refuses the API key."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "refused")
