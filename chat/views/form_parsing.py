"""What pages send along with a message."""

from __future__ import annotations

import uuid

from django.utils.translation import gettext as _

from chat.errors import InvalidMessageError
from memory.api import PageRequest


def parse_image_ids(request: PageRequest) -> list[uuid.UUID]:
    """The pictures that go with the message. Raises InvalidMessageError for what is no id."""
    try:
        return [uuid.UUID(text) for text in request.POST.getlist("image")]
    except ValueError as error:
        raise InvalidMessageError(_("This page has expired. Copy your text, reload and try again.")) from error


def parse_client_key(request: PageRequest) -> uuid.UUID:
    """The key that makes a message sent twice one turn. Raises InvalidMessageError where there is none."""
    try:
        return uuid.UUID(request.POST.get("client_key", ""))
    except ValueError as error:
        raise InvalidMessageError(_("This page has expired. Copy your text, reload and try again.")) from error
