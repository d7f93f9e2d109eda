"""Which exchanges hold a term: the only SQL that differs between SQLite and PostgreSQL.

The databases answer two questions, how many rows hold a term and which; what that means is decided in Python, the same
on both.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Avg, Count, Max
from numpy.typing import NDArray

from memory.lexical.bm25 import Asked, idf
from memory.models import Words

Rows = NDArray[np.int64]

# A term that more rows hold than this counts as one that so many hold; PostgreSQL counts no further.
MOST_COUNTED = 20_000
# The rarest terms of a question are looked up until together they stand in so many rows.
MOST_PROPOSED = 10_000
_SHORTEST_PREFIX = 3
_SHORTEST_HEAD = 4
_MOST_VARIED = 12
# Statistics of a corpus may be a little old once it is large.
_SMALL = 1_000
_GROWTH = 1.02

_HOLDS = "array_to_tsvector(string_to_array(terms, ' ')) @@ %s::tsquery"


class Statistics:
    """How many rows there are, how long on average, and how many hold a term; remembered while the corpus is much the
    same, with terms that many rows hold, so nobody's rare word stays in a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest = -1
        self.documents = 0
        self.mean_length = 1.0
        self._common: dict[str, int] = {}

    def refresh(self) -> None:
        """Count again where the corpus has grown."""
        newest = Words.objects.aggregate(newest=Max("id"))["newest"] or 0
        with self._lock:
            if newest > _SMALL and self._newest <= newest <= self._newest * _GROWTH:
                return
            counted = Words.objects.aggregate(documents=Count("id"), mean=Avg("length"))
            self._newest, self._common = newest, {}
            self.documents, self.mean_length = counted["documents"], counted["mean"] or 1.0

    def holding(self, term: str) -> int:
        """How many rows hold `term`, at most MOST_COUNTED."""
        if term in self._common:
            return self._common[term]
        count = min(_count(term), MOST_COUNTED)
        if count > _SMALL:
            self._common[term] = count
        return count


statistics = Statistics()


def asked(terms: Mapping[str, str]) -> list[tuple[Asked, int]]:
    """Each term (with its word) weighted, and how many rows hold it, rarest first, what no row holds last.

    A term that no row holds is taken for the beginning of a longer word, or else for a shorter one with an ending;
    not in a long text, which has words enough.
    """
    statistics.refresh()
    may_vary = len(terms) <= _MOST_VARIED
    found = []
    for term, word in terms.items():
        form, count, is_prefix = term, statistics.holding(term), False
        if may_vary and (_is_one_of_a_pair(term) or (not count and len(term) >= _SHORTEST_PREFIX)):
            form, count, is_prefix = _nearest_form(term, count)
        found.append((Asked(form, word, idf(statistics.documents, count), is_prefix), count))
    return sorted(found, key=lambda pair: (not pair[1], pair[1], pair[0].term))


def rows_holding(ask: Asked, spaces: Iterable[uuid.UUID]) -> Rows:
    """The ids of the rows of `spaces` that hold the term, ascending."""
    places = list(spaces)
    if connection.vendor == "sqlite":
        marks = ", ".join(["%s"] * len(places))
        # CROSS: SQLite keeps that order, and looks each match up instead of matching each row of the spaces.
        sql = (
            "SELECT w.id FROM memory_words_index CROSS JOIN memory_words w ON w.id = memory_words_index.rowid "
            f"WHERE memory_words_index MATCH %s AND w.space_id IN ({marks}) ORDER BY memory_words_index.rowid DESC LIMIT %s"
        )
        values: list[Any] = [_match(ask.term, ask.is_prefix), *(place.hex for place in places), MOST_PROPOSED]
    else:
        sql = f"SELECT id FROM memory_words WHERE {_HOLDS} AND space_id = ANY(%s) ORDER BY id DESC LIMIT %s"
        values = [_tsquery(ask.term, ask.is_prefix), places, MOST_PROPOSED]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows = [row[0] for row in cursor.fetchall()]
    return np.asarray(rows[::-1], dtype=np.int64)


def _is_one_of_a_pair(term: str) -> bool:
    """A single character of a script that is written in pairs."""
    return len(term) == 1 and term > "\u0e00"


def _nearest_form(term: str, count: int) -> tuple[str, int, bool]:
    longer = _count(term, is_prefix=True)
    if longer > count:
        return term, min(longer, MOST_COUNTED), True
    for end in range(len(term) - 1, _SHORTEST_HEAD - 1, -1):
        shorter = statistics.holding(term[:end])
        if shorter:
            return term[:end], shorter, False
    return term, count, False


def _count(term: str, *, is_prefix: bool = False) -> int:
    with connection.cursor() as cursor:
        if connection.vendor != "sqlite":
            cursor.execute(
                f"SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE {_HOLDS} LIMIT %s) AS counted",
                [_tsquery(term, is_prefix), MOST_COUNTED],
            )
        elif is_prefix:
            cursor.execute(
                "SELECT count(*) FROM (SELECT 1 FROM memory_words_index WHERE memory_words_index MATCH %s LIMIT %s)",
                [_match(term, True), MOST_COUNTED],
            )
        else:
            cursor.execute("SELECT coalesce(max(doc), 0) FROM memory_words_vocabulary WHERE term = %s", [term])
        return int(cursor.fetchone()[0])


def _match(term: str, is_prefix: bool) -> str:
    return f'"{term}"*' if is_prefix else f'"{term}"'


def _tsquery(term: str, is_prefix: bool) -> str:
    return f"'{term}':*" if is_prefix else f"'{term}'"
