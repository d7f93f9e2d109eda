"""Form fields of several pages."""

from __future__ import annotations

import uuid

from django.utils.translation import gettext as _

from chat.errors import InvalidMessageError
from memory.api import PageRequest, parse_number


def parse_attachment_ids(request: PageRequest) -> list[uuid.UUID]:
    """Return the ids of the attachments. Raises InvalidMessageError."""
    try:
        return [uuid.UUID(text) for text in request.POST.getlist("attachment")]
    except ValueError as error:
        raise InvalidMessageError(_("This page has expired. Copy your text, reload and try again.")) from error


def parse_client_key(request: PageRequest) -> uuid.UUID:
    """Return the client key, by which posting is idempotent. Raises InvalidMessageError.

    It depends on the text as well: a page keeps its key until it gets a response, and what is typed instead of a message
    whose response was lost is another message.
    """
    try:
        return uuid.uuid5(uuid.UUID(request.POST.get("client_key", "")), request.POST.get("message", ""))
    except ValueError as error:
        raise InvalidMessageError(_("This page has expired. Copy your text, reload and try again.")) from error


def parse_revision(request: PageRequest) -> int:
    """Return the revision of a statement that the page showed, 0 for none."""
    return parse_number(request.POST.get("revision", "")) or 0
