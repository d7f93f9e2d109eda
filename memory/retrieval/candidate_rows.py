"""Reading the candidates of a question: a few hundred rows, by their ids.

By hand and with ids as hexadecimal text, since as model instances they would take longer than all the rest of a search.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import connection

from memory.filters import Filter, to_sql
from memory.models import Exchange
from memory.spaces.access import SpaceIds

# Words without a join, and ids as an array on PostgreSQL: it would read through whole tables for a few hundred rows. By
# id alone: given the spaces too, SQLite walks through all of a space instead of looking up these few.
_READ = (
    "SELECT {id}, {previous_id}, (SELECT w.terms FROM memory_words w WHERE w.exchange_id = e.id), {session_id}, {said}, "
    "{owner_id}, e.source_file, {space_id}, e.forgotten_at IS NULL AND NOT e.is_hidden "
    "FROM memory_exchange e WHERE e.id {wanted}"
)
_IDS = ("id", "previous_id", "session_id", "owner_id", "space_id")
# These, what was said right after each, and right before.
_WANTED = (
    "SELECT id FROM memory_exchange WHERE id {these} "
    "UNION SELECT id FROM memory_exchange WHERE previous_id {these} "
    "UNION SELECT previous_id FROM memory_exchange WHERE id {these}"
)


@dataclass(slots=True)
class CandidateRow:
    """What is needed of an exchange to rank it, or what was said beside it; ids in hexadecimal.

    `document` names the document it is a chunk of, within its space; it is empty for all else.
    """

    id: str
    previous_id: str | None
    terms: str
    session_id: str | None
    timestamp: datetime
    owner_id: str
    document: str


class CandidateLoader:
    """Reads exchanges with what was said right before and after each, if they are findable and lie in `spaces`.

    `rows` are all that were found so far, by id.
    """

    def __init__(self, spaces: SpaceIds) -> None:
        self._spaces = {space.hex for space in spaces}
        self._asked: set[str] = set()
        self.rows: dict[str, CandidateRow] = {}

    def read(self, ids: Iterable[str]) -> None:
        """Find those of these ids that were not asked for before."""
        wanted = list(set(ids) - self._asked)
        if not wanted:
            return
        self._asked.update(wanted)
        with connection.cursor() as cursor:
            cursor.execute(*(_on_sqlite(wanted) if connection.vendor == "sqlite" else _on_postgresql(wanted)))
            for id, previous, terms, session, said, owner, file, space, is_findable in cursor.fetchall():
                if is_findable and space in self._spaces:
                    document = f"{space}/{file}" if file else ""
                    self.rows[id] = CandidateRow(id, previous, terms or "", session, _moment(said), owner, document)


def spaces_with_other_authors(spaces: SpaceIds, author_id: uuid.UUID) -> SpaceIds:
    """Those of `spaces` that hold exchanges by anybody else."""
    return frozenset(space for space in spaces if _has_other_authors(space, author_id))


def _has_other_authors(space_id: uuid.UUID, author_id: uuid.UUID) -> bool:
    """Return whether the space holds an exchange by anybody else, read from both sides of the author in an index."""
    rows = Exchange.objects.filter(space_id=space_id)
    return rows.filter(owner_id__lt=author_id).exists() or rows.filter(owner_id__gt=author_id).exists()


def filter_ids(ids: Iterable[str], filters: Filter) -> set[str]:
    """Which of these exchanges fulfil `filters`."""
    rows = Exchange.objects.filter(id__in=[uuid.UUID(id) for id in ids]).filter(to_sql(filters))
    return {id.hex for id in rows.values_list("id", flat=True)}


def _on_sqlite(ids: list[str]) -> tuple[str, list[str]]:
    columns = {name: f"e.{name}" for name in _IDS}
    wanted = _WANTED.format(these=f"IN ({', '.join(['%s'] * len(ids))})")
    return _READ.format(**columns, said="e.timestamp", wanted=f"IN ({wanted})"), 3 * ids


def _on_postgresql(ids: list[str]) -> tuple[str, list[str]]:
    # Ids as one text, and what comes back as text and numbers: as objects they would cost as much again.
    columns = {name: f"encode(uuid_send(e.{name}), 'hex')" for name in _IDS}
    said = "extract(epoch FROM e.timestamp)::float8"
    wanted = _WANTED.format(these="= ANY (%s::uuid[])")
    return _READ.format(**columns, said=said, wanted=f"= ANY (ARRAY({wanted}))"), 3 * [f"{{{','.join(ids)}}}"]


def _moment(said: datetime | float) -> datetime:
    return said.replace(tzinfo=UTC) if isinstance(said, datetime) else datetime.fromtimestamp(said, UTC)
