"""What exports of team chats have in common: names of accounts, private channels, and channels that cannot be read."""

from __future__ import annotations

from collections.abc import Callable

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from chat.imports.formats.conversation import UNREADABLE, WITHOUT_MESSAGES, Conversation, Unread
from chat.imports.formats.sources import DAMAGED
from memory.api import ExtractionError

# Returns the name of the account with an email address, "" if there is none.
NameOfAccount = Callable[[str], str]

PRIVATE = gettext_noop("private channels and direct messages")


def private(name: str) -> Unread:
    """Return why a channel that is not public is not imported."""
    return Unread(name, _("Not imported: fewer people could read it."), PRIVATE)


def channel_or_reason(name: str, read: Callable[[], Conversation]) -> Conversation | Unread:
    """Return the channel, or why it is not imported."""
    try:
        conversation = read()
    except (ExtractionError, *DAMAGED) as error:
        return Unread(f"#{name}", str(error), UNREADABLE)
    except (ValueError, RecursionError):
        return Unread(f"#{name}", _("It is damaged: it is not valid JSON."), UNREADABLE)
    if not conversation.messages:
        return Unread(f"#{name}", _("Empty conversation."), WITHOUT_MESSAGES)
    return conversation
