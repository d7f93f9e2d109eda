"""The spaces in which a person's things may live, as forms offer and send them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from django.contrib.auth import get_user_model
from django.utils.translation import gettext as _

from memory.errors import InvalidInputError, NotFoundError
from memory.models import Space
from memory.requests import PageRequest
from memory.spaces import access


@dataclass(frozen=True, slots=True)
class SpaceChoice:
    id: uuid.UUID
    name: str
    kind: str
    readers: int
    is_here: bool


def space_choices(person_id: uuid.UUID, here: uuid.UUID | None = None) -> list[SpaceChoice]:
    """The spaces this person reads; `here` is the one in which a thing lives now."""
    people = get_user_model().objects.filter(is_active=True)
    return [
        SpaceChoice(space.id, space.shown_name, space.kind, access.readers(space, people).count(), space.id == here)
        for space in access.list_readable_spaces(person_id)
    ]


def parse_space(request: PageRequest) -> Space | None:
    """The space that was chosen, if this person reads it; None where none was. Raises InvalidInputError."""
    chosen = request.POST.get("space", "")
    if not chosen:
        return None
    try:
        return access.get_space(request.user.pk, uuid.UUID(chosen))
    except (ValueError, NotFoundError) as error:
        raise InvalidInputError(_("This space is not there any more, or not yours. Choose another one.")) from error
