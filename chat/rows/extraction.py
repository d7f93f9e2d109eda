"""Rows of spaces with the state of their extraction."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.llm import endpoint
from memory import api as memory
from memory.api import Space, SpaceKnowledge, format_number

# More unread exchanges are not counted, since a page must not read a whole space.
_MAX_COUNT = 10_000


@dataclass(frozen=True, slots=True)
class ExtractionRow:
    """A space and its extraction; the fields from `model` on are for who may change it (`can_set`)."""

    space_id: uuid.UUID
    space_name: str
    space_kind: str
    is_on: bool
    is_paused: bool
    state_text: str
    error: str
    can_set: bool
    model: str
    daily_tokens: int
    tokens_text: str


def extraction_rows(person_id: uuid.UUID) -> list[ExtractionRow]:
    """Return the spaces that this person reads and in which extraction is on, or which they may switch on."""
    spaces = memory.list_readable_spaces(person_id)
    known = {row.space_id: row for row in SpaceKnowledge.objects.filter(space__in=spaces)}
    settable = memory.settable_knowledge(person_id, spaces)
    has_model = endpoint.current() is not None
    rows = (
        _row(space, known.get(space.pk) or SpaceKnowledge(space=space), space.pk in settable, has_model=has_model)
        for space in spaces
    )
    return [row for row in rows if row.is_on or row.can_set]


def running_rows(rows: Iterable[ExtractionRow]) -> list[ExtractionRow]:
    """Return those in which extraction is on."""
    return [row for row in rows if row.is_on]


def _row(space: Space, knowledge: SpaceKnowledge, can_set: bool, *, has_model: bool) -> ExtractionRow:
    used = knowledge.tokens_used if knowledge.tokens_used_on == timezone.now().date() else 0
    figures = {"used": format_number(used), "most": format_number(knowledge.daily_tokens)}
    return ExtractionRow(
        space_id=space.pk,
        space_name=space.display_name,
        space_kind=space.kind,
        is_on=knowledge.is_on,
        is_paused=knowledge.is_paused,
        state_text=_state_text(knowledge, is_used_up=used >= knowledge.daily_tokens, has_model=has_model),
        error=knowledge.error if knowledge.is_on else "",
        can_set=can_set,
        model=knowledge.model,
        daily_tokens=knowledge.daily_tokens,
        tokens_text=_("%(used)s of %(most)s tokens today") % figures if knowledge.is_on else "",
    )


def _state_text(knowledge: SpaceKnowledge, *, is_used_up: bool, has_model: bool) -> str:
    if not knowledge.is_on:
        return _("Off")
    if knowledge.is_paused:
        return _("Paused")
    if not has_model:
        return _("Waiting for a model: none is connected")
    unread = memory.unread_exchanges(knowledge.space_id)[:_MAX_COUNT].count()
    if not unread:
        return _("Up to date")
    if is_used_up:
        return _("Continues tomorrow: the tokens of today are used")
    text = ngettext("Extracting from %(count)s exchange", "Extracting from %(count)s exchanges", unread)
    return text % {"count": format_number(unread)}
