"""Stop answers, and interrupt answers whose process died."""

from __future__ import annotations

import logging
import uuid
from datetime import timedelta

from django.db import transaction
from django.db.models import F, UUIDField, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from chat.answers.persistence import store_exchange
from chat.models import Turn
from chat.realtime.notifications import notify_thread_changed

log = logging.getLogger(__name__)

# A running answer writes a heartbeat at least every second; a recall may last until its timeout.
HEARTBEAT_TIMEOUT = timedelta(seconds=15)


def request_stop(turn: Turn, *, by: uuid.UUID) -> bool:
    """Request that this answer stops, for any reader of its thread; return False if it is not running.

    The turn names the first person who requested it.
    """
    running = Turn.objects.filter(id=turn.id, state__in=Turn.RUNNING_STATES)
    first = Coalesce("stopped_by", Value(by, output_field=UUIDField()))
    return bool(running.update(stop_requested=True, stopped_by=first))


def interrupt_stale_answers() -> list[uuid.UUID]:
    """Interrupt running answers without a heartbeat, keep their partial text, and return the ids of their turns."""
    stale = Turn.objects.running().filter(heartbeat_at__lt=timezone.now() - HEARTBEAT_TIMEOUT)
    return [turn_id for turn_id in stale.values_list("id", flat=True) if _interrupt(turn_id)]


@transaction.atomic
def _interrupt(turn_id: uuid.UUID) -> bool:
    stale = Turn.objects.filter(
        id=turn_id, state__in=Turn.RUNNING_STATES, heartbeat_at__lt=timezone.now() - HEARTBEAT_TIMEOUT
    )
    interrupted = stale.update(
        state=Turn.State.INTERRUPTED,
        attempt=F("attempt") + 1,
        revision=F("revision") + 1,
        completed_at=timezone.now(),
    )
    if interrupted:
        turn = Turn.objects.select_related("thread__space", "session").get(id=turn_id)
        notify_thread_changed(turn.thread_id)
        log.warning("an answer was interrupted after %d characters", len(turn.answer))
        if turn.answer.strip():
            store_exchange(turn)
    return bool(interrupted)
