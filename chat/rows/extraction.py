"""Rows of spaces with the state of their extraction."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.llm import endpoint
from chat.llm.endpoint import ModelEndpoint
from memory import api as memory
from memory.api import Space, SpaceKnowledge, estimate_remaining, format_number, format_remaining

# More unread exchanges are not counted, since a page must not read a whole space.
_MAX_COUNT = 10_000


@dataclass(frozen=True, slots=True)
class ExtractionRow:
    """A space and its extraction; the fields from `model` on are for who may change it (`can_set`).

    `is_reading`: exchanges are left, and are read without anybody's doing. `bar` is how much of the backlog is read, from 0
    to 20, None if unknown. `error` is why the last run failed, at `failed_at`, with the model `used_model`.
    """

    space_id: uuid.UUID
    space_name: str
    space_kind: str
    is_on: bool
    is_paused: bool
    state_text: str
    is_reading: bool
    bar: int | None
    error: str
    failed_at: datetime | None
    used_model: str
    can_set: bool
    model: str
    daily_tokens: int
    tokens_text: str


def extraction_rows(person_id: uuid.UUID) -> list[ExtractionRow]:
    """Return the spaces that this person reads and in which extraction is on, or which they may switch on."""
    spaces = memory.list_readable_spaces(person_id)
    known = {row.space_id: row for row in SpaceKnowledge.objects.filter(space__in=spaces)}
    settable = memory.settable_knowledge(person_id, spaces)
    model_endpoint = endpoint.current()
    rows = (
        _row(space, known.get(space.pk) or SpaceKnowledge(space=space), space.pk in settable, model_endpoint)
        for space in spaces
    )
    return [row for row in rows if row.is_on or row.can_set]


def _row(space: Space, knowledge: SpaceKnowledge, can_set: bool, model_endpoint: ModelEndpoint | None) -> ExtractionRow:
    used = knowledge.tokens_used if knowledge.tokens_used_on == timezone.now().date() else 0
    figures = {"used": format_number(used), "most": format_number(knowledge.daily_tokens)}
    is_used_up = used >= knowledge.daily_tokens
    idle_text = _idle_text(knowledge, model_endpoint)
    unread = 0 if idle_text else memory.unread_exchanges(space.pk)[:_MAX_COUNT].count()
    is_reading = bool(unread) and not is_used_up
    share = 1 - unread / knowledge.backlog if is_reading and unread <= knowledge.backlog else None
    return ExtractionRow(
        space_id=space.pk,
        space_name=space.display_name,
        space_kind=space.kind,
        is_on=knowledge.is_on,
        is_paused=knowledge.is_paused,
        state_text=idle_text or _progress_text(knowledge, unread, is_used_up=is_used_up),
        is_reading=is_reading,
        bar=None if share is None or knowledge.error else round(20 * share),
        error=knowledge.error if knowledge.is_on and (idle_text or unread) else "",
        failed_at=knowledge.failed_at,
        used_model=model_endpoint.displayed_model(knowledge.model) if model_endpoint else "",
        can_set=can_set,
        model=knowledge.model,
        daily_tokens=knowledge.daily_tokens,
        tokens_text=_("%(used)s of %(most)s tokens today") % figures if knowledge.is_on else "",
    )


def _idle_text(knowledge: SpaceKnowledge, model_endpoint: ModelEndpoint | None) -> str:
    """Return what somebody has to do before anything is read, "" if nothing."""
    if not knowledge.is_on:
        return _("Off")
    if knowledge.is_paused:
        return _("Paused")
    return "" if model_endpoint else _("Waiting for a model: none is connected")


def _progress_text(knowledge: SpaceKnowledge, unread: int, *, is_used_up: bool) -> str:
    if not unread:
        return _("Up to date")
    if is_used_up:
        return _("Continues tomorrow: today's tokens are used up")
    if knowledge.error:
        text = ngettext("%(count)s exchange is not read yet", "%(count)s exchanges are not read yet", unread)
        return text % {"count": format_number(unread)}
    text = ngettext("Extracting from %(count)s exchange", "Extracting from %(count)s exchanges", unread)
    text = text % {"count": format_number(unread)}
    remaining = format_remaining(estimate_remaining(("extraction", knowledge.space_id), unread))
    return f"{text}, {remaining}" if remaining else text
