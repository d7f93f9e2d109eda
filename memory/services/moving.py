"""Moving what a thread said to another space: SQL at once, the vectors right after."""

from __future__ import annotations

import uuid

from django.db import transaction

from memory import generations, jobs, nudge
from memory.models import Embedding, Exchange, Index, Space, Words


@transaction.atomic
def move_thread(thread_id: uuid.UUID, *, to: Space) -> int:
    """Put every exchange of the thread into the space `to`; returns how many moved."""
    moving = Exchange.objects.filter(thread_id=thread_id).exclude(space=to)
    ids = list(moving.values_list("id", flat=True))
    # What is forgotten after the move would else stay in the files of where it was.
    generations.soil(Index.objects.filter(embeddings__exchange_id__in=ids))
    Exchange.objects.filter(id__in=ids).update(space=to)
    Words.objects.filter(exchange_id__in=ids).update(space=to)
    jobs.begin_again(Embedding.objects.filter(exchange_id__in=ids))
    nudge.after_commit("index_pending")
    return len(ids)
