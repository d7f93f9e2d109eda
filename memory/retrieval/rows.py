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

# What is asked of every row first, then what is made of it.
_ALWAYS = "e.forgotten_at, e.is_hidden, e.space_id, e.id, e.previous_id"
# No join: PostgreSQL would read through all words for a few hundred of them.
_TERMS = "(SELECT w.terms FROM memory_words w WHERE w.exchange_id = e.id)"
_BESIDE = f"{_ALWAYS}, {_TERMS}"
_ROW = f"{_ALWAYS}, {_TERMS}, e.session_id, e.timestamp"
_ROW_OF_WORDS = f"{_ALWAYS}, w.terms, e.session_id, e.timestamp"
_EXCHANGES = "memory_exchange e"
_WORDS = "memory_words w JOIN memory_exchange e ON e.id = w.exchange_id"
Id = str | uuid.UUID


@dataclass(slots=True)
class Beside:
    """What is needed of an exchange that was said before or after one that is ranked; ids in hexadecimal."""

    id: str
    previous_id: str | None
    terms: str


@dataclass(slots=True)
class Row(Beside):
    """What is needed of an exchange to rank it."""

    session_id: str | None
    timestamp: datetime


def by_id(ids: Iterable[str], spaces: SpaceIds) -> list[Row]:
    """The findable exchanges with these ids that lie in `spaces`."""
    return [_row(*found) for found in _found(_ROW, _EXCHANGES, "e.id", _bound(ids), spaces)]


def by_words(words_ids: Iterable[int], spaces: SpaceIds) -> list[Row]:
    """The findable exchanges with these rows of words that lie in `spaces`."""
    return [_row(*found) for found in _found(_ROW_OF_WORDS, _WORDS, "w.id", list(words_ids), spaces)]


def said_before(ids: Iterable[str], spaces: SpaceIds) -> list[Beside]:
    """The findable exchanges with these ids."""
    return [_beside(*found) for found in _found(_BESIDE, _EXCHANGES, "e.id", _bound(ids), spaces)]


def said_after(ids: Iterable[str], spaces: SpaceIds) -> list[Beside]:
    """The findable exchanges said right after these."""
    return [_beside(*found) for found in _found(_BESIDE, _EXCHANGES, "e.previous_id", _bound(ids), spaces)]


def passing(ids: Iterable[str], filters: Filter) -> set[str]:
    """Which of these exchanges fulfil `filters`."""
    rows = Exchange.objects.filter(id__in=[uuid.UUID(id) for id in ids]).filter(to_sql(filters))
    return {id.hex for id in rows.values_list("id", flat=True)}


def _found(columns: str, tables: str, column: str, values: list[Any], spaces: SpaceIds) -> list[tuple[Any, ...]]:
    """The columns after the first three of the rows that may be found."""
    if not values:
        return []
    # By id alone: given the spaces too, SQLite walks through all of a space instead of looking up these few.
    sql = f"SELECT {columns} FROM {tables} WHERE {column}"
    if connection.vendor == "sqlite":
        sql, parameters = f"{sql} IN ({', '.join(['%s'] * len(values))})", values
    else:
        sql, parameters = f"{sql} = ANY(%s)", [values]
    # As the database gives them, so that none has to be turned into anything else.
    readable = {space.hex for space in spaces} if connection.vendor == "sqlite" else spaces
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [
            found
            for forgotten, hidden, space, *found in cursor.fetchall()
            if forgotten is None and not hidden and space in readable
        ]


def _row(id: Id, previous: Id | None, terms: str | None, session: Id | None, said: datetime) -> Row:
    return Row(_hex(id) or "", _hex(previous), terms or "", _hex(session), _moment(said))


def _beside(id: Id, previous: Id | None, terms: str | None) -> Beside:
    return Beside(_hex(id) or "", _hex(previous), terms or "")


def _bound(ids: Iterable[str]) -> list[Any]:
    """Ids as the database keeps them."""
    return list(ids) if connection.vendor == "sqlite" else [uuid.UUID(id) for id in ids]


def _hex(id: Id | None) -> str | None:
    return id.hex if isinstance(id, uuid.UUID) else id


def _moment(said: datetime) -> datetime:
    return said.replace(tzinfo=UTC) if said.tzinfo is None else said
