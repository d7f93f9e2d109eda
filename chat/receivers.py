"""Receivers of memory's signals, which update open pages and delete what was forgotten."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import F, Q, QuerySet
from django.dispatch import receiver

from chat.attachments import delete_attachments_of_documents, forget_attachments
from chat.instructions.editing import delete_forgotten
from chat.models import Turn
from chat.realtime import frames
from chat.realtime.hub import publish
from chat.turns.additions import remove_additions
from memory.api import RecallLogEntry, signals


@receiver(signals.exchanges_indexed)
@receiver(signals.indexing_failed)
def on_exchanges_indexed(exchange_ids: list[uuid.UUID], **kwargs: Any) -> None:
    """Update the footers of the exchanges' turns."""
    for turn_id in _bump_revisions(_turns_of(exchange_ids)):
        publish(frames.turn_footer(turn_id))


@receiver(signals.exchanges_forgotten)
def on_exchanges_forgotten(exchange_ids: list[uuid.UUID], by: uuid.UUID, **kwargs: Any) -> None:
    """Delete the instructions, attachments and cards of forgotten messages; update the turns that had or recalled them."""
    delete_forgotten()
    remove_additions(exchange_ids=exchange_ids)
    forgotten = _turns_of(exchange_ids)
    had_attachment = forget_attachments(list(forgotten), by=by)
    used_in = RecallLogEntry.objects.filter(exchange_id__in=exchange_ids).values("turn_id")
    turns = forgotten | Turn.objects.filter(Q(id__in=used_in) | Q(id__in=had_attachment))
    for turn_id in _bump_revisions(turns):
        publish(frames.turn(turn_id))


@receiver(signals.documents_deleted)
def on_documents_deleted(document_ids: list[uuid.UUID], **kwargs: Any) -> None:
    """Delete the attachments whose documents were forgotten, and update the turns that had them."""
    remove_additions(document_ids=document_ids)
    had_attachment = delete_attachments_of_documents(document_ids)
    for turn_id in _bump_revisions(Turn.objects.filter(id__in=had_attachment)):
        publish(frames.turn(turn_id))


def _turns_of(exchange_ids: list[uuid.UUID]) -> QuerySet[Turn]:
    return Turn.objects.filter(Q(exchange_id__in=exchange_ids) | Q(copied_exchange_id__in=exchange_ids))


def _bump_revisions(turns: QuerySet[Turn]) -> list[uuid.UUID]:
    """Increase the revision of the turns that are not running, whose answer streams set it; return those on pages."""
    ids = list(turns.exclude(state__in=Turn.RUNNING_STATES).values_list("id", flat=True))
    Turn.objects.filter(id__in=ids).exclude(state__in=Turn.RUNNING_STATES).update(revision=F("revision") + 1)
    # No page shows other versions of a message, and it would report an error for each that it cannot replace.
    return list(Turn.objects.filter(id__in=ids).active_branch().values_list("id", flat=True))
