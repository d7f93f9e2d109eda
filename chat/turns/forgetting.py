"""Forgetting from a conversation: who may, and the verb."""

from __future__ import annotations

import uuid

from chat.models import Thread
from memory import api as memory
from memory.errors import NotFoundError
from memory.models import Exchange
from memory.spaces import access


def readable_exchange(person_id: uuid.UUID, exchange_id: uuid.UUID) -> Exchange:
    """The exchange, if this person may read it; a forgotten one is as if it were not there. Raises NotFoundError."""
    rows = access.in_spaces(Exchange.objects.findable().filter(id=exchange_id), access.readable_space_ids(person_id))
    exchange: Exchange | None = rows.select_related("owner", "space").first()
    if exchange is None:
        raise NotFoundError
    return exchange


def can_forget(person_id: uuid.UUID, exchange: Exchange, *, is_administrator: bool) -> bool:
    """Its owner may, the owner of its thread, and an administrator."""
    if is_administrator or exchange.owner_id == person_id:
        return True
    if exchange.thread_id is None:
        return False
    return Thread.objects.filter(id=exchange.thread_id, owner_id=person_id).exists()


def exchange_to_forget(person_id: uuid.UUID, exchange_id: uuid.UUID, *, is_administrator: bool) -> Exchange:
    """Return the exchange, if this person may forget it. Raises NotFoundError.

    Their own they may forget wherever it is: its thread may have been moved to a space that they do not read.
    """
    own = Exchange.objects.findable().filter(id=exchange_id, owner_id=person_id).select_related("owner", "space")
    exchange: Exchange = own.first() or readable_exchange(person_id, exchange_id)
    if not can_forget(person_id, exchange, is_administrator=is_administrator):
        raise NotFoundError
    return exchange


def forget_exchange(person_id: uuid.UUID, exchange_id: uuid.UUID, *, is_administrator: bool) -> Exchange:
    """Forget one exchange. Raises NotFoundError, the same where this person may not."""
    exchange = exchange_to_forget(person_id, exchange_id, is_administrator=is_administrator)
    memory.forget([exchange.id], by=person_id)
    return exchange
