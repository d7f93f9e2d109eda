"""Parts of several administration pages: bulk selections, the start of operations, active reveals and labels."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.contrib import messages
from django.db.models import Model, QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from memory.administration import reveals
from memory.errors import InvalidInputError
from memory.models import Exchange, Operation, Space
from memory.text import parse_number, parse_uuid
from memory.utils.formatting import format_number
from memory.views.http import PageRequest

M = TypeVar("M", bound=Model)

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
    """The selection in a list: the ticked ids, or everything that matches the filters.

    `confirmed` is how many rows the person agreed to, None before the question; later rows than `asked_at` are excluded.
    """

    filters: QueryDict
    ids: list[uuid.UUID]
    is_all: bool
    confirmed: int | None
    asked_at: datetime

    def limit(self, rows: QuerySet[M]) -> QuerySet[M]:
        """Return those of the filtered rows that are selected."""
        rows = rows.filter(created_at__lte=self.asked_at)
        return rows if self.is_all else rows.filter(pk__in=self.ids)

    def is_confirmed(self, count: int) -> bool:
        """Return whether the person agreed to so many rows; more can match the filters meanwhile."""
        return self.confirmed is not None and count <= self.confirmed

    def form_fields(self, name: str, count: int) -> list[tuple[str, str]]:
        """Return the hidden fields that send the selection of `count` rows again; `name` is the field of the ids."""
        selected = [("all", "yes")] if self.is_all else [(name, str(id)) for id in self.ids]
        asked = [("confirmed", str(count)), ("asked_at", self.asked_at.isoformat())]
        return [("filters", self.filters.urlencode()), *selected, *asked]


def parse_bulk_selection(request: PageRequest, name: str) -> BulkSelection:
    """Return the selection of the form whose check boxes are called `name`; invalid ids are ignored."""
    parsed = [parse_uuid(text) for text in request.POST.getlist(name)[:_MAX_IDS]]
    now = timezone.now()
    try:
        asked_at = parse_datetime(request.POST.get("asked_at", ""))
    except ValueError:
        asked_at = None
    return BulkSelection(
        filters=QueryDict(request.POST.get("filters", "")),
        ids=[id for id in parsed if id is not None],
        is_all=request.POST.get("all") == "yes",
        confirmed=parse_number(request.POST.get("confirmed", "")),
        asked_at=asked_at if asked_at is not None and timezone.is_aware(asked_at) else now,
    )


def start_operation(request: PageRequest, create: Callable[[], Operation], *, list_page: str) -> HttpResponse:
    """Show the operation that `create` returns; on `list_page` why there is none if it raises InvalidInputError."""
    try:
        operation = create()
    except InvalidInputError as error:
        messages.error(request, str(error))
        return redirect(list_page)
    return redirect("admin_operation", operation.pk)


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
