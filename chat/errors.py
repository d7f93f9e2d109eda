"""What can go wrong in a conversation, each with a sentence for the person and the fact its catcher needs.

ChatError
├── NotFound                there is nothing here, or it is not theirs (sounds the same)
├── PermissionDeniedError   they may read it, and may not do this with it
├── Refused                 the message or command cannot be taken as it is; the text stays with the person
│   └── ThreadBusyError     an answer is being written in the thread
└── ModelFailed             the endpoint did not answer as it should; `code` says how
"""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

NOTHING_HERE = gettext_noop("Not found.")


class ChatError(Exception):
    """The root: str() of it is a sentence for a person."""


class NotFound(ChatError):
    def __init__(self) -> None:
        super().__init__(_(NOTHING_HERE))


class PermissionDeniedError(ChatError):
    """They may read the object, so saying that it is theirs to read but not to change reveals nothing."""


class Refused(ChatError):
    """`suggestion` is what they may have meant, or empty."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion


class ThreadBusyError(Refused):
    """An answer is being written in the thread, or waits to be."""

    def __init__(self) -> None:
        super().__init__(_("An answer is in progress. Stop it or wait for it to finish."))


class ModelFailed(ChatError):
    """`code` is one of unreachable, timeout, rate_limited, refused, rejected, broken, cut, empty."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code
