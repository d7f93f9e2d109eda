"""Reading the candidates of a question: a few hundred rows, by their ids.

By hand and with ids as hexadecimal text, since as model instances they would take longer than all the rest of a search.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import connection

from memory.filters import Filter, to_sql
from memory.models import Exchange
from memory.spaces import SpaceIds

_COLUMNS = "e.id, e.session_id, e.previous_id, e.timestamp, w.terms, e.space_id, e.forgotten_at, e.is_hidden"
_FROM_EXCHANGES = "memory_exchange e LEFT JOIN memory_words w ON w.exchange_id = e.id"
_FROM_WORDS = "memory_words w JOIN memory_exchange e ON e.id = w.exchange_id"


@dataclass(slots=True)
class Row:
    """What is needed of an exchange to rank it; ids in hexadecimal."""

    id: str
    session_id: str | None
    previous_id: str | None
    timestamp: datetime
    terms: str


def by_id(ids: Iterable[str], spaces: SpaceIds) -> list[Row]:
    """The findable exchanges with these ids that lie in `spaces`."""
    return _rows(_FROM_EXCHANGES, "e.id", _bound(ids), spaces)


def by_words(words_ids: Iterable[int], spaces: SpaceIds) -> list[Row]:
    """The findable exchanges with these rows of words that lie in `spaces`."""
    return _rows(_FROM_WORDS, "w.id", list(words_ids), spaces)


def following(ids: Iterable[str], spaces: SpaceIds) -> list[Row]:
    """The findable exchanges said right after these."""
    return _rows(_FROM_EXCHANGES, "e.previous_id", _bound(ids), spaces)


def passing(ids: Iterable[str], filters: Filter) -> set[str]:
    """Which of these exchanges fulfil `filters`."""
    rows = Exchange.objects.filter(id__in=[uuid.UUID(id) for id in ids]).filter(to_sql(filters))
    return {id.hex for id in rows.values_list("id", flat=True)}


def _rows(tables: str, column: str, values: list[Any], spaces: SpaceIds) -> list[Row]:
    if not values:
        return []
    # By id alone: given the spaces too, SQLite walks through all of a space instead of looking up these few.
    sql = f"SELECT {_COLUMNS} FROM {tables} WHERE {column}"
    if connection.vendor == "sqlite":
        sql, parameters = f"{sql} IN ({', '.join(['%s'] * len(values))})", values
    else:
        sql, parameters = f"{sql} = ANY(%s)", [values]
    readable = {space.hex for space in spaces}
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [
            Row(_hex(id) or "", _hex(session), _hex(previous), _moment(said), terms or "")
            for id, session, previous, said, terms, space, forgotten, hidden in cursor.fetchall()
            if forgotten is None and not hidden and _hex(space) in readable
        ]


def _bound(ids: Iterable[str]) -> list[Any]:
    """Ids as the database keeps them."""
    return list(ids) if connection.vendor == "sqlite" else [uuid.UUID(id) for id in ids]


def _hex(id: str | uuid.UUID | None) -> str | None:
    return id.hex if isinstance(id, uuid.UUID) else id


def _moment(said: datetime) -> datetime:
    return said.replace(tzinfo=UTC) if said.tzinfo is None else said
