"""Parts of several administration lists: bulk selections, active reveals and labels."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.http import QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.administration import reveals
from memory.models import Exchange, Space
from memory.text import parse_uuid
from memory.utils.formatting import format_number
from memory.views.http import PageRequest

_MAX_IDS = 1000


@dataclass(frozen=True, slots=True)
class RevealRow:
    """A running reveal, with the address that ends it."""

    space_label: str
    reason: str
    ends_at: datetime
    end_url: str


@dataclass(frozen=True, slots=True)
class BulkSelection:
    """The selection in a list: the ticked ids, or everything that matches the filters."""

    filters: QueryDict
    ids: list[uuid.UUID]
    is_all: bool

    def parameters(self, visible_spaces: frozenset[uuid.UUID]) -> dict[str, object]:
        """Return the parameters of an operation; the text filter applies to the spaces in `visible_spaces` only."""
        filters = {name: value for name, value in self.filters.items() if value}
        parameters: dict[str, object] = {"filters": filters, "shown": sorted(map(str, visible_spaces))}
        return parameters if self.is_all else parameters | {"ids": [str(id) for id in self.ids]}

    def form_fields(self, name: str) -> list[tuple[str, str]]:
        """Return the hidden fields that send the selection again; `name` is the field of the ids."""
        selected = [("all", "yes")] if self.is_all else [(name, str(id)) for id in self.ids]
        return [("filters", self.filters.urlencode()), *selected, ("confirmed", "yes")]


def parse_bulk_selection(request: PageRequest, name: str) -> BulkSelection:
    """Return the selection of the form whose check boxes are called `name`; invalid ids are ignored."""
    parsed = [parse_uuid(text) for text in request.POST.getlist(name)[:_MAX_IDS]]
    ids = [id for id in parsed if id is not None]
    return BulkSelection(QueryDict(request.POST.get("filters", "")), ids, request.POST.get("all") == "yes")


def active_reveal_rows(request: PageRequest) -> list[RevealRow]:
    """Return the reveals that this administrator has now."""
    return [
        RevealRow(space_label(row.space), row.reason, row.ends_at, reverse("end_reveal", args=[row.pk]))
        for row in reveals.active_reveals(request.user.pk)
    ]


def space_label(space: Space) -> str:
    """Return the name of a space for administrators."""
    return _("the personal space of %(name)s") % {"name": space.owner} if space.owner else space.display_name


def size_of(exchange: Exchange) -> str:
    """Return the number of characters as text."""
    characters = ngettext("%(count)s characters", "%(count)s characters", exchange.size)
    return characters % {"count": format_number(exchange.size)}


def space_column(space: Space, request: PageRequest) -> str:
    """Return the name of a space for a list with a separate column for the person."""
    if space.kind == Space.Kind.PERSONAL and space.owner_id != request.user.pk:
        return _("Their own")
    return space.display_name
