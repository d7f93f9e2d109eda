"""Moving what a thread said to another space: SQL at once, the vectors right after."""

from __future__ import annotations

import uuid

from django.db import transaction

from memory.models import Embedding, Exchange, Space
from memory.services.exchanges import make_due


@transaction.atomic
def move_thread(thread_id: uuid.UUID, *, to: Space) -> int:
    """Put every exchange of the thread into the space `to`; returns how many moved."""
    moving = Exchange.objects.filter(thread_id=thread_id).exclude(space=to)
    ids = list(moving.values_list("id", flat=True))
    Exchange.objects.filter(id__in=ids).update(space=to)
    make_due(Embedding.objects.filter(exchange_id__in=ids))
    return len(ids)
