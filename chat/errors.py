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
    ├── KeyRefusedError
    └── UnknownModelError
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True, slots=True)
class EndpointReason:
    """Why a model endpoint rejected a request, in its own words, and after how many seconds it accepts others.

    `code` and `kind` are the fields `code` and `type` of OpenAI's errors; `unsupported_field` is the field of the request that
    the model does not accept, which is not stored. All are empty if the endpoint did not say.
    """

    message: str = ""
    code: str = ""
    kind: str = ""
    retry_after: int | None = None
    unsupported_field: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are not empty; the time of the next request is stored, not the time until then."""
        retry_at = None if self.retry_after is None else int(time.time()) + self.retry_after
        fields = {"message": self.message, "code": self.code, "kind": self.kind, "retry_at": retry_at}
        return {name: value for name, value in fields.items() if value}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> EndpointReason:
        """Return the reason that was stored with `as_json`."""
        seconds = fields.get("retry_at", 0) - int(time.time())
        message, code, kind = (fields.get(name, "") for name in ("message", "code", "kind"))
        return cls(message, code, kind, seconds if seconds > 0 else None)


NO_REASON = EndpointReason()


class ModelError(ChatError):
    """The model endpoint failed, or may not be asked; `reason` is the endpoint's own.

    `code` is unreachable, timeout, rate_limited, refused, rejected, broken, cut, empty or data_policy.
    """

    def __init__(self, message: str, code: str, reason: EndpointReason = NO_REASON) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


class KeyRefusedError(ModelError):
    """The model endpoint refuses the API key."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "refused")


class UnknownModelError(ModelError):
    """The model endpoint does not know the model."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "rejected")
