"""Keep in a thread what people add to memory there with a command, and remove what was forgotten."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from functools import partial

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from chat.models import Addition, Thread, Turn
from chat.realtime import frames
from chat.realtime.hub import publish


def keep_additions(
    thread: Thread,
    *,
    person_id: uuid.UUID,
    exchange_ids: Sequence[uuid.UUID] = (),
    document_ids: Sequence[uuid.UUID] = (),
) -> Turn | None:
    """Keep what a command added after the last turn of the thread that is shown, and tell its pages.

    Return this turn; None if there is no turn yet.
    """
    turn = thread.turns.active_branch().exclude(state=Turn.State.QUEUED).last()
    if turn is None:
        return None
    now = timezone.now()
    ids = [("exchange_id", id) for id in exchange_ids] + [("document_id", id) for id in document_ids]
    Addition.objects.bulk_create(
        Addition(turn=turn, person_id=person_id, added_at=now, **{column: id}) for column, id in ids
    )
    _update_pages([turn])
    return turn


def remove_additions(*, exchange_ids: Iterable[uuid.UUID] = (), document_ids: Iterable[uuid.UUID] = ()) -> None:
    """Remove the additions that are these forgotten exchanges and documents, and tell the pages of their threads."""
    rows = Addition.objects.filter(exchange_id__in=list(exchange_ids)) | Addition.objects.filter(
        document_id__in=list(document_ids)
    )
    turns = list(Turn.objects.filter(id__in=rows.values("turn_id")))
    if turns:
        rows.delete()
        _update_pages(turns)


def _update_pages(turns: Sequence[Turn]) -> None:
    """Increase the revisions of the turns, for pages that are offline; the stream of a running answer does it itself."""
    ids = [turn.id for turn in turns]
    Turn.objects.filter(id__in=ids).exclude(state__in=Turn.RUNNING_STATES).update(revision=F("revision") + 1)
    # After the commit, because the pages ask at once what there is.
    for turn in turns:
        transaction.on_commit(partial(publish, frames.additions(turn)))
