"""What the administrator's lists share: what may be shown, which spaces are revealed, what was ticked."""

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

_MOST_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RevealRow:
    space_label: str
    reason: str
    ends_at: datetime
    end_url: str


@dataclass(frozen=True, slots=True)
class BulkSelection:
    """What a form of a list means: the ids that were ticked, or all that its filters leave."""

    filters: QueryDict
    ids: list[uuid.UUID]
    is_all: bool

    def parameters(self, shown: frozenset[uuid.UUID]) -> dict[str, object]:
        """The same as an operation takes it, with the spaces in which words count."""
        filters = {name: value for name, value in self.filters.items() if value}
        chosen: dict[str, object] = {"filters": filters, "shown": sorted(map(str, shown))}
        return chosen if self.is_all else chosen | {"ids": [str(id) for id in self.ids]}

    def form_fields(self, name: str) -> list[tuple[str, str]]:
        """Return the hidden fields that send the selection again; `name` is the field of the ids."""
        selected = [("all", "yes")] if self.is_all else [(name, str(id)) for id in self.ids]
        return [("filters", self.filters.urlencode()), *selected, ("confirmed", "yes")]


def parse_bulk_selection(request: PageRequest, name: str) -> BulkSelection:
    """What was chosen in the list whose boxes are called `name`; what is no id is passed over."""
    parsed = [parse_uuid(text) for text in request.POST.getlist(name)[:_MOST_AT_ONCE]]
    ids = [id for id in parsed if id is not None]
    return BulkSelection(QueryDict(request.POST.get("filters", "")), ids, request.POST.get("all") == "yes")


def active_reveal_rows(request: PageRequest) -> list[RevealRow]:
    """What this administrator is shown for a while beside what they may read."""
    return [
        RevealRow(space_label(row.space), row.reason, row.ends_at, reverse("end_reveal", args=[row.pk]))
        for row in reveals.active_reveals(request.user.pk)
    ]


def space_label(space: Space) -> str:
    """A space as administrators call it."""
    return _("the personal space of %(name)s") % {"name": space.owner} if space.owner else space.display_name


def size_of(exchange: Exchange) -> str:
    """How much was said, in words."""
    characters = ngettext("%(count)s characters", "%(count)s characters", exchange.size)
    return characters % {"count": format_number(exchange.size)}


def space_shown(space: Space, request: PageRequest) -> str:
    """A space's name in a list whose people stand in a column of their own."""
    if space.kind == Space.Kind.PERSONAL and space.owner_id != request.user.pk:
        return _("Their own")
    return space.display_name
