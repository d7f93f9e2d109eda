"""Which exchanges hold a term: the only SQL that differs between SQLite and PostgreSQL.

The databases answer two questions, how many rows hold a term and which; what that means is decided in Python, the same
on both.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from django.db import connection
from django.db.models import Count, Max, QuerySet, Sum
from numpy.typing import NDArray

from memory.lexical.bm25 import QueryTerm, idf
from memory.models import Words

RowIds = NDArray[np.int64]

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

_TERM_HELD = "EXISTS(SELECT FROM memory_words WHERE lexemes @@ %s::tsquery AND space_id = ANY(%s))"
# PostgreSQL does not know how rare a beginning is: by itself it would walk through all of the spaces for one nobody said,
# 62 ms among 100,000 rows.
_BEGINNING_HELD = (
    "EXISTS(WITH held AS MATERIALIZED (SELECT space_id FROM memory_words WHERE lexemes @@ %s::tsquery) "
    "SELECT FROM held WHERE space_id = ANY(%s))"
)


class TermStatistics:
    """How many rows there are, how long on average, and how many hold a term; remembered while the corpus is much the
    same, with terms that many rows hold, so nobody's rare word stays in a process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest = -1
        self.documents = 0
        self.mean_length = 1.0
        self._in_space: dict[uuid.UUID, int] = {}
        self._common: dict[str, int] = {}

    def refresh(self) -> None:
        """Count again where the corpus has grown."""
        newest = Words.objects.aggregate(newest=Max("id"))["newest"] or 0
        with self._lock:
            if newest > _SMALL and self._newest <= newest <= self._newest * _GROWTH:
                return
            counted = Words.objects.values_list("space_id").annotate(Count("id"), Sum("length"))
            self._newest, self._common = newest, {}
            self._in_space = {space: rows for space, rows, _ in counted}
            self.documents = sum(self._in_space.values())
            self.mean_length = sum(length for *_, length in counted) / max(self.documents, 1) or 1.0

    def are_few(self, spaces: Iterable[uuid.UUID]) -> bool:
        """Whether less than a quarter of all rows lie in these spaces."""
        return 4 * sum(self._in_space.get(space, 0) for space in spaces) < self.documents

    def holding(self, terms: Iterable[str]) -> dict[str, int]:
        """How many rows hold each of these terms, at most MOST_COUNTED."""
        common = self._common
        counts = {term: common.get(term, 0) for term in terms}
        counts |= _counts([term for term, count in counts.items() if not count])
        common |= {term: count for term, count in counts.items() if count > _SMALL}
        return counts


statistics = TermStatistics()


def weigh_terms(terms: Mapping[str, str], spaces: Iterable[uuid.UUID]) -> list[tuple[QueryTerm, int]]:
    """Each term (with its word) weighted, and how many rows hold it, rarest first, what no row holds last.

    A term that no row of `spaces` holds is taken for the beginning of a longer word, or else for a shorter one with an
    ending; not in a long text, which has words enough. Weights and counts are of the whole corpus; what is looked for is
    decided by what may be read, for else it would tell which words stand elsewhere.
    """
    statistics.refresh()
    places = list(spaces)
    may_vary = len(terms) <= _MOST_VARIED
    counts = statistics.holding(terms)
    here = _held([(term, False) for term, count in counts.items() if count], places) if may_vary else set()
    found = []
    for term, word in terms.items():
        form, count, is_prefix = term, counts[term], False
        if may_vary and (_is_one_of_a_pair(term) or (term not in here and len(term) >= _SHORTEST_PREFIX)):
            form, count, is_prefix = _nearest_form(term, count, places)
        found.append((QueryTerm(form, word, idf(statistics.documents, count), is_prefix), count))
    return sorted(found, key=lambda pair: (not pair[1], pair[1], pair[0].term))


def rows_with_terms(asks: Sequence[QueryTerm], spaces: Iterable[uuid.UUID]) -> list[RowIds]:
    """For each of these terms the ids of the rows that hold it, of every space; of more than MOST_PROPOSED the newest.

    On PostgreSQL of `spaces` alone where few rows lie in them: it reads the rows anyway, which SQLite's index does not.
    """
    if connection.vendor == "sqlite":
        # As one text, since row by row other threads get the interpreter between any two of some thousands.
        rows = "SELECT rowid FROM memory_words_index WHERE memory_words_index MATCH %s ORDER BY rowid DESC LIMIT %s"
        sql = ", ".join([f"(SELECT group_concat(rowid) FROM ({rows}))"] * len(asks))
        values: list[Any] = [value for ask in asks for value in (_match(ask.term, ask.is_prefix), MOST_PROPOSED)]
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {sql}", values)
            return [np.fromstring(ids or "", dtype=np.int64, sep=",") for ids in cursor.fetchone()]
    places = list(spaces)
    here, values = ("AND space_id = ANY(%s) ", [places]) if statistics.are_few(places) else ("", [])
    sql = (
        f"SELECT ARRAY(SELECT id FROM memory_words WHERE lexemes @@ asked.query {here}ORDER BY id DESC LIMIT %s) "
        "FROM unnest(%s::tsquery[]) AS asked(query)"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, MOST_PROPOSED, [_tsquery(ask.term, ask.is_prefix) for ask in asks]])
        return [np.asarray(ids, dtype=np.int64) for (ids,) in cursor.fetchall()]


def newest_with_term(ask: QueryTerm, spaces: Iterable[uuid.UUID], limit: int) -> list[str]:
    """The newest `limit` exchanges of `spaces` whose words hold the term, the newest first, by their hexadecimal ids."""
    places = list(spaces)
    if connection.vendor == "sqlite":
        marks = ", ".join(["%s"] * len(places))
        # CROSS: SQLite keeps that order, and looks each match up instead of matching each row of the spaces.
        sql = (
            "SELECT w.exchange_id FROM memory_words_index CROSS JOIN memory_words w ON w.id = memory_words_index.rowid "
            f"WHERE memory_words_index MATCH %s AND w.space_id IN ({marks}) ORDER BY memory_words_index.rowid DESC LIMIT %s"
        )
        values: list[Any] = [_match(ask.term, ask.is_prefix), *(place.hex for place in places), limit]
    else:
        sql = (
            "SELECT encode(uuid_send(exchange_id), 'hex') FROM memory_words "
            "WHERE lexemes @@ %s::tsquery AND space_id = ANY(%s) ORDER BY id DESC LIMIT %s"
        )
        values = [_tsquery(ask.term, ask.is_prefix), places, limit]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [exchange_id for (exchange_id,) in cursor.fetchall()]


def rows_with_all_terms(terms: Iterable[str]) -> QuerySet[Words]:
    """The rows that hold every one of these terms, of every space."""
    if connection.vendor == "sqlite":
        where = "id IN (SELECT rowid FROM memory_words_index WHERE memory_words_index MATCH %s)"
        query = " AND ".join(_match(term, False) for term in terms)
    else:
        where = "lexemes @@ %s::tsquery"
        query = " & ".join(_tsquery(term, False) for term in terms)
    return Words.objects.extra(where=[where], params=[query])  # noqa: S610  (the statement is ours)


def exchange_ids_in_spaces(spaces: Iterable[uuid.UUID], rows: RowIds) -> list[str]:
    """The exchanges of those of these rows that lie in `spaces`, in the order of the rows, by their hexadecimal ids."""
    ids, places = rows.tolist(), list(spaces)
    if connection.vendor == "sqlite":
        marks, more = (", ".join(["%s"] * len(some)) for some in (ids, places))
        sql = f"SELECT id, exchange_id FROM memory_words WHERE id IN ({marks}) AND space_id IN ({more})"
        values = [*ids, *(place.hex for place in places)]
    else:
        sql = "SELECT id, encode(uuid_send(exchange_id), 'hex') FROM memory_words WHERE id = ANY(%s) AND space_id = ANY(%s)"
        values = [ids, places]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        held = dict(cursor.fetchall())
    return [held[id] for id in ids if id in held]


def _is_one_of_a_pair(term: str) -> bool:
    """A single character of a script that is written in pairs."""
    return len(term) == 1 and term > "\u0e00"


def _nearest_form(term: str, count: int, places: Sequence[uuid.UUID]) -> tuple[str, int, bool]:
    if _held([(term, True)], places):
        longer = _count_longer(term)
        if longer > count:
            return term, longer, True
    heads = [term[:end] for end in range(len(term) - 1, _SHORTEST_HEAD - 1, -1)]
    here = _held([(head, False) for head in heads], places)
    for head in heads:
        if head in here:
            (shorter,) = statistics.holding([head]).values()
            return head, shorter, False
    return term, count, False


def _held(forms: Sequence[tuple[str, bool]], places: Sequence[uuid.UUID]) -> set[str]:
    """Those of these terms (or beginnings of terms) that a row of these spaces holds."""
    if not forms or not places:
        return set()
    if connection.vendor == "sqlite":
        marks = ", ".join(["%s"] * len(places))
        one = (
            "EXISTS(SELECT 1 FROM memory_words_index CROSS JOIN memory_words w ON w.id = memory_words_index.rowid "
            f"WHERE memory_words_index MATCH %s AND w.space_id IN ({marks}))"
        )
        asks = [one] * len(forms)
        values: list[Any] = [value for form in forms for value in (_match(*form), *(place.hex for place in places))]
    else:
        asks = [_BEGINNING_HELD if is_prefix else _TERM_HELD for _, is_prefix in forms]
        values = [value for form in forms for value in (_tsquery(*form), list(places))]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(asks)}", values)
        found = cursor.fetchone()
    return {term for (term, _), is_held in zip(forms, found, strict=True) if is_held}


def _counts(terms: Sequence[str]) -> dict[str, int]:
    """How many rows hold each of these terms, at most MOST_COUNTED, those that none holds too."""
    if not terms:
        return {}
    if connection.vendor == "sqlite":
        marks = ", ".join(["%s"] * len(terms))
        sql = f"SELECT term, min(doc, %s) FROM memory_words_vocabulary WHERE term IN ({marks})"
        values: list[Any] = [MOST_COUNTED, *terms]
    else:
        sql = (
            "SELECT term, (SELECT count(*) FROM (SELECT 1 FROM memory_words WHERE lexemes @@ asked.query LIMIT %s) AS held) "
            "FROM unnest(%s::text[], %s::tsquery[]) AS asked(term, query)"
        )
        values = [MOST_COUNTED, list(terms), [_tsquery(term, False) for term in terms]]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return dict.fromkeys(terms, 0) | dict(cursor.fetchall())


def _count_longer(term: str) -> int:
    """How many rows hold a term that begins with this one, at most MOST_COUNTED."""
    if connection.vendor == "sqlite":
        holding, asked = "memory_words_index WHERE memory_words_index MATCH %s", _match(term, True)
    else:
        holding, asked = "memory_words WHERE lexemes @@ %s::tsquery", _tsquery(term, True)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM (SELECT 1 FROM {holding} LIMIT %s) AS held", [asked, MOST_COUNTED])
        return int(cursor.fetchone()[0])


def _match(term: str, is_prefix: bool) -> str:
    return f'"{term}"*' if is_prefix else f'"{term}"'


def _tsquery(term: str, is_prefix: bool) -> str:
    return f"'{term}':*" if is_prefix else f"'{term}'"
