"""Form fields and parameters of several pages: the choice of a space, passages, places, and metadata as text."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _

from memory.errors import InvalidInputError, NotFoundError
from memory.models import Space
from memory.spaces import access
from memory.text import clean_text, parse_uuid
from memory.views.http import PageRequest

_ELEMENT_ID = re.compile(r"[\w-]{1,80}")
# More chunks than one passage of a prompt has.
_MAX_ALSO = 20


@dataclass(frozen=True, slots=True)
class SpaceChoice:
    """A space that a form offers, with the number of its readers."""

    id: uuid.UUID
    name: str
    kind: str
    readers: int
    is_current: bool


def space_choices(person_id: uuid.UUID, current: uuid.UUID | None = None) -> list[SpaceChoice]:
    """Return the spaces to which the person can add something, `current` marked."""
    spaces = access.list_open_spaces(person_id)
    readers = access.count_readers(spaces)
    return [
        SpaceChoice(space.id, space.display_name, space.kind, readers[space.id], space.id == current)
        for space in spaces
    ]


def parse_space(request: PageRequest) -> Space | None:
    """Return the chosen space, None if none was chosen. Raises InvalidInputError if the person cannot read it."""
    value = request.POST.get("space", "")
    if not value:
        return None
    try:
        return access.get_space(request.user.pk, uuid.UUID(value))
    except (ValueError, NotFoundError) as error:
        raise InvalidInputError(_("This space is not there any more, or not yours. Choose another one.")) from error


def listed_space(request: PageRequest) -> Space | None:
    """Return the space to which the parameter `space` limits a list, None for all. Raises NotFoundError."""
    value = request.GET.get("space", "")
    return access.get_space(request.user.pk, parse_uuid(value) or uuid.UUID(int=0)) if value else None


def parse_passage(request: PageRequest, exchange_id: uuid.UUID) -> list[uuid.UUID]:
    """Return the ids of the exchanges of a passage: `exchange_id` and those in the parameter `also`, at most 20.

    Raises NotFoundError for anything else.
    """
    others = [parse_uuid(value) for value in request.GET.getlist("also")[:_MAX_ALSO]]
    ids = [exchange_id, *(id for id in others if id)]
    if len(ids) <= len(others):
        raise NotFoundError(_("Not found."))
    return list(dict.fromkeys(ids))


def parse_place(request: PageRequest) -> str:
    """Return the parameter `at`, the id of an element of the page; "here" for anything else."""
    match = _ELEMENT_ID.fullmatch(request.GET.get("at", ""))
    return match[0] if match else "here"


def local_path(path: str, default: str) -> str:
    """Return the path of this site to which a form leads back; `default` for anything else."""
    # Without a leading slash, `redirect` would treat it as the name of a view.
    return path if path.startswith("/") and url_has_allowed_host_and_scheme(path, None) else default


def format_metadata(metadata: Mapping[str, object]) -> str:
    """Return the lines that `parse_metadata` reads as this metadata: `key: value`, where text needs no quotes."""
    return "\n".join(f"{key}: {_format_value(value)}" for key, value in metadata.items())


def parse_metadata(text: str) -> dict[str, Any]:
    """Return the metadata in these lines, not validated. Raises InvalidInputError for a line without a colon."""
    metadata: dict[str, Any] = {}
    for number, line in enumerate(clean_text(text).splitlines(), start=1):
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon:
            raise InvalidInputError(_("Line %(number)s has no colon. Write it as key: value.") % {"number": number})
        try:
            metadata[key.strip()] = json.loads(value)
        except ValueError:
            metadata[key.strip()] = value.strip()
    return metadata


def _format_value(value: object) -> str:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    try:
        json.loads(value)
    except ValueError:
        return value
    return json.dumps(value, ensure_ascii=False)  # unquoted, it would be read as a number, for example
