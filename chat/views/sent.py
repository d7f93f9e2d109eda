"""What pages send along with a message."""

from __future__ import annotations

import uuid

from chat.errors import Refused
from memory import spaces
from memory.errors import NotFound
from memory.models import Space
from memory.requests import PageRequest


def sent_images(request: PageRequest) -> list[uuid.UUID]:
    """The pictures that go with the message. Raises Refused for what is no id."""
    try:
        return [uuid.UUID(text) for text in request.POST.getlist("image")]
    except ValueError as error:
        raise Refused("This page is out of date. Copy your text, reload, and send it again.") from error


def sent_space(request: PageRequest) -> Space | None:
    """The space that was chosen, if this person reads it; None where none was. Raises Refused."""
    chosen = request.POST.get("space", "")
    if not chosen:
        return None
    try:
        return spaces.space_for(request.user.pk, uuid.UUID(chosen))
    except (ValueError, NotFound) as error:
        raise Refused("This space is not there any more, or not yours. Choose another one.") from error


def sent_key(request: PageRequest) -> uuid.UUID:
    """The key that makes a message sent twice one turn. Raises Refused where there is none."""
    try:
        return uuid.UUID(request.POST.get("client_key", ""))
    except ValueError as error:
        raise Refused("This page is out of date. Copy your text, reload, and send it again.") from error
