"""Stopping an answer, and marking those whose process died."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.answers.persistence import store_exchange
from chat.errors import ConflictError, PermissionDeniedError
from chat.images import delete_unreferenced, images_of
from chat.models import Thread, Turn
from chat.realtime.notifications import notify_thread_changed
from chat.threads.locks import lock_thread

log = logging.getLogger(__name__)

# Answers write a heartbeat at least every second; recalling may take its time-out.
SILENCE = timedelta(seconds=15)


def request_stop(turn: Turn) -> bool:
    """Ask whoever writes this answer to stop. False where it is over already, or has not begun."""
    return bool(Turn.objects.filter(id=turn.id, state__in=Turn.ACTIVE).update(stop_asked=True))


@transaction.atomic
def withdraw_message(turn: Turn, *, by: uuid.UUID) -> None:
    """Take back one's own message before its answer begins: it was never said. Raises ConflictError, PermissionDeniedError."""
    thread = lock_thread(turn.thread_id)
    waiting = thread.turns.filter(id=turn.id, state=Turn.State.QUEUED).first()
    if waiting is None:
        raise ConflictError(_("The answer has already started. Stop it instead."))
    if by not in (waiting.author_id, thread.owner_id):
        raise PermissionDeniedError(_("Only the author can withdraw this message."))
    waiting.children.update(parent=waiting.parent_id)
    if thread.head_id == waiting.id:
        Thread.objects.filter(id=thread.id).update(head=waiting.parent_id)
    pictures = images_of([waiting])
    waiting.delete()
    delete_unreferenced(pictures)


def interrupt_stale_answers() -> list[uuid.UUID]:
    """Mark answers that nobody writes any more as interrupted, keeping what they said; returns their turns."""
    silent = Turn.objects.filter(state__in=Turn.ACTIVE, heartbeat_at__lt=timezone.now() - SILENCE)
    return [turn_id for turn_id in silent.values_list("id", flat=True) if _interrupt(turn_id)]


@transaction.atomic
def _interrupt(turn_id: uuid.UUID) -> bool:
    taken = Turn.objects.filter(id=turn_id, state__in=Turn.ACTIVE, heartbeat_at__lt=timezone.now() - SILENCE).update(
        state=Turn.State.INTERRUPTED,
        attempt=F("attempt") + 1,
        revision=F("revision") + 1,
        completed_at=timezone.now(),
    )
    if taken:
        turn = Turn.objects.select_related("thread__space", "session").get(id=turn_id)
        notify_thread_changed(turn.thread_id)
        log.warning("an answer was interrupted after %d characters", len(turn.answer))
        if turn.answer.strip():
            store_exchange(turn)
    return bool(taken)
