"""Read the candidates of a query: a few hundred rows by id.

Uses raw SQL and hexadecimal ids. Building model instances would take longer than the rest of the search.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from itertools import pairwise
from operator import or_

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from memory.filters import Filter, to_sql
from memory.models import Exchange, Space
from memory.spaces.access import SpaceIds

# A join for the terms, or an id list on PostgreSQL, would read whole tables for a few hundred rows. So the terms come
# from a sub-select and PostgreSQL gets an array. The query does not restrict the spaces: SQLite would then read every
# row of a space instead of looking up the ids.
_READ = (
    "SELECT {id}, {previous_id}, (SELECT w.terms FROM memory_lexicalentry w WHERE w.exchange_id = e.id), {session_id}, "
    "{timestamp}, {owner_id}, e.source_file, {space_id}, e.forgotten_at IS NULL AND NOT e.is_inactive, "
    "(SELECT j.parts || ' ' || j.version || ' ' || coalesce(j.collection_id, 0) FROM memory_embeddingjob j "
    "WHERE j.exchange_id = e.id AND j.generation_id = %s) "
    "FROM memory_exchange e WHERE e.id {ids_with_neighbours}"
)
_NO_VECTORS = (0, 0, 0)
_IDS = ("id", "previous_id", "session_id", "owner_id", "space_id")
# The given exchanges, their successors and their predecessors.
_WITH_NEIGHBOURS = (
    "SELECT id FROM memory_exchange WHERE id {these} "
    "UNION SELECT id FROM memory_exchange WHERE previous_id {these} "
    "UNION SELECT previous_id FROM memory_exchange WHERE id {these}"
)


@dataclass(slots=True)
class CandidateRow:
    """The columns of an exchange that ranking needs, for candidates and their neighbours; ids are hexadecimal.

    `document` identifies the document of a chunk within its space; it is empty for other exchanges. `vectors` is the
    number of the exchange's vectors in the index generation, `version` the version of the text that they are of, and
    `collection_id` the collection that has them; 0 if there are none.
    """

    id: str
    previous_id: str | None
    terms: str
    session_id: str | None
    timestamp: datetime
    owner_id: str
    document: str
    vectors: int
    version: int
    collection_id: int


class CandidateLoader:
    """Load exchanges with their predecessors and successors, keeping only findable rows in `spaces`.

    `generation_id` is the index generation of the vectors. `rows` holds everything loaded so far, by
    hexadecimal id.
    """

    def __init__(self, spaces: SpaceIds, generation_id: int) -> None:
        self._spaces = {space.hex for space in spaces}
        self._generation_id = generation_id
        self._requested: set[str] = set()
        self.rows: dict[str, CandidateRow] = {}

    def read(self, ids: Iterable[str]) -> None:
        """Load the given ids that were not requested before, together with their neighbours."""
        new_ids = list(set(ids) - self._requested)
        if not new_ids:
            return
        self._requested.update(new_ids)
        with connection.cursor() as cursor:
            sql, ids_three_times = (_sqlite_query if connection.vendor == "sqlite" else _postgresql_query)(new_ids)
            cursor.execute(sql, [self._generation_id, *ids_three_times])
            for id, previous, terms, session, timestamp, owner, file, space, is_findable, vectors in cursor.fetchall():
                if is_findable and space in self._spaces:
                    document = f"{space}/{file}" if file else ""
                    self.rows[id] = CandidateRow(
                        id,
                        previous,
                        terms or "",
                        session,
                        _to_datetime(timestamp),
                        owner,
                        document,
                        *(map(int, vectors.split()) if vectors else _NO_VECTORS),
                    )


def spaces_with_other_authors(spaces: SpaceIds, author_ids: Iterable[uuid.UUID]) -> SpaceIds:
    """Return those of `spaces` that contain exchanges of other authors than these, with one statement.

    Range queries (below, between and above these ids) can use the index on space and owner.
    """
    ids = sorted(author_ids)
    others = [Q(owner_id__lt=ids[0]), Q(owner_id__gt=ids[-1])]
    others += [Q(owner_id__gt=low, owner_id__lt=high) for low, high in pairwise(ids)]
    of_space = Exchange.objects.filter(space=OuterRef("pk"))
    found = Space.objects.filter(reduce(or_, (Exists(of_space.filter(other)) for other in others)), pk__in=list(spaces))
    return frozenset(found.values_list("pk", flat=True))


def filter_ids(ids: Iterable[str], filters: Filter) -> set[str]:
    """Return those of `ids` (hexadecimal) whose exchanges match `filters`."""
    rows = Exchange.objects.filter(id__in=[uuid.UUID(id) for id in ids]).filter(to_sql(filters))
    return {id.hex for id in rows.values_list("id", flat=True)}


def _sqlite_query(ids: list[str]) -> tuple[str, list[str]]:
    columns = {name: f"e.{name}" for name in _IDS}
    ids_with_neighbours = _WITH_NEIGHBOURS.format(these=f"IN ({', '.join(['%s'] * len(ids))})")
    return _READ.format(**columns, timestamp="e.timestamp", ids_with_neighbours=f"IN ({ids_with_neighbours})"), 3 * ids


def _postgresql_query(ids: list[str]) -> tuple[str, list[str]]:
    # Pass the ids as one text and return text and numbers. Converting to objects would double the cost.
    columns = {name: f"encode(uuid_send(e.{name}), 'hex')" for name in _IDS}
    timestamp = "extract(epoch FROM e.timestamp)::float8"
    ids_with_neighbours = _WITH_NEIGHBOURS.format(these="= ANY (%s::uuid[])")
    return _READ.format(
        **columns, timestamp=timestamp, ids_with_neighbours=f"= ANY (ARRAY({ids_with_neighbours}))"
    ), 3 * [f"{{{','.join(ids)}}}"]


def _to_datetime(timestamp: datetime | float) -> datetime:
    return timestamp.replace(tzinfo=UTC) if isinstance(timestamp, datetime) else datetime.fromtimestamp(timestamp, UTC)
