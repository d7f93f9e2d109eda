"""Find the exchanges that contain a term: the only SQL that differs between SQLite and PostgreSQL.

The databases answer only how many rows contain a term, and which. Python interprets the answers in the same way for
both.
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
from memory.models import LexicalEntry

RowIds = NDArray[np.int64]

# Upper limit for the row count of a term. PostgreSQL stops counting there.
MAX_COUNTED = 20_000
# The rarest terms of a query are looked up until their rows together reach this number.
MAX_PROPOSED = 10_000
_MIN_PREFIX_LENGTH = 3
_MIN_SHORTENED_LENGTH = 4
_MAX_TERMS_WITH_VARIANTS = 12
# Above this number of rows, statistics may be slightly out of date.
_SMALL = 1_000
_GROWTH = 1.02

_TERM_EXISTS = "EXISTS(SELECT FROM memory_lexicalentry WHERE lexemes @@ %s::tsquery AND space_id = ANY(%s))"
# PostgreSQL cannot estimate the rarity of a prefix. Without MATERIALIZED it scans the whole spaces for an absent one:
# 62 ms with 100,000 rows.
_PREFIX_EXISTS = (
    "EXISTS(WITH matches AS MATERIALIZED (SELECT space_id FROM memory_lexicalentry WHERE lexemes @@ %s::tsquery) "
    "SELECT FROM matches WHERE space_id = ANY(%s))"
)


class TermStatistics:
    """Number of rows, mean length, and number of rows per term.

    Values are cached until the corpus grows noticeably. Only common terms are cached, so that no process keeps a
    person's rare word.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest = -1
        self.documents = 0
        self.mean_length = 1.0
        self._in_space: dict[uuid.UUID, int] = {}
        self._common: dict[str, int] = {}

    def refresh(self) -> None:
        """Recount if the corpus is small, or if its highest row id fell or rose by more than two percent."""
        # A small corpus is counted each time, and needs no statement that finds out whether it has changed.
        if self._newest > _SMALL:
            newest = LexicalEntry.objects.aggregate(newest=Max("id"))["newest"] or 0
            if self._newest <= newest <= self._newest * _GROWTH:
                return
        counted = LexicalEntry.objects.values_list("space_id").annotate(Count("id"), Sum("length"), Max("id"))
        with self._lock:
            rows = list(counted)
            self._newest, self._common = max((newest for *_, newest in rows), default=0), {}
            self._in_space = {space: count for space, count, *_ in rows}
            self.documents = sum(self._in_space.values())
            self.mean_length = sum(length for *_, length, _ in rows) / max(self.documents, 1) or 1.0

    def hold_few_rows(self, spaces: Iterable[uuid.UUID]) -> bool:
        """Return True if less than a quarter of all rows are in these spaces."""
        return 4 * sum(self._in_space.get(space, 0) for space in spaces) < self.documents

    def document_frequencies(self, terms: Iterable[str]) -> dict[str, int]:
        """Return the number of rows that contain each term, at most MAX_COUNTED."""
        common = self._common
        counts = {term: common.get(term, 0) for term in terms}
        counts |= _count_rows([term for term, count in counts.items() if not count])
        common |= {term: count for term, count in counts.items() if count > _SMALL}
        return counts


statistics = TermStatistics()


def weigh_terms(terms: Mapping[str, str], spaces: Iterable[uuid.UUID]) -> list[tuple[QueryTerm, int]]:
    """Return the weighted terms with their row counts, rarest first, terms without rows last.

    `terms` maps terms to words. A term that no row in `spaces` contains becomes a prefix, or is shortened if no term begins
    with it. Long queries have enough terms and get no variants. Weights and counts come from the whole corpus. Variants
    depend on readable rows only, because they would otherwise reveal which words occur elsewhere.
    """
    statistics.refresh()
    space_ids = list(spaces)
    has_variants = len(terms) <= _MAX_TERMS_WITH_VARIANTS
    counts = statistics.document_frequencies(terms)
    present = terms_in_spaces((term for term, count in counts.items() if count), space_ids) if has_variants else set()
    weighted = []
    for term, word in terms.items():
        form, count, is_prefix = term, counts[term], False
        if has_variants and (_is_single_unspaced(term) or (term not in present and len(term) >= _MIN_PREFIX_LENGTH)):
            form, count, is_prefix = _closest_form(term, count, space_ids)
        weighted.append((QueryTerm(form, word, idf(statistics.documents, count), is_prefix), count))
    return sorted(weighted, key=lambda pair: (not pair[1], pair[1], pair[0].term))


def rows_with_terms(query_terms: Sequence[QueryTerm], spaces: Iterable[uuid.UUID]) -> list[RowIds]:
    """Return for each term the ids of its rows, at most the newest MAX_PROPOSED, in all spaces.

    If `spaces` contain few rows, PostgreSQL is limited to them: it reads the rows anyway. SQLite's index does not read
    them.
    """
    if connection.vendor == "sqlite":
        # Fetch the ids as one text. Row by row, other threads would take the interpreter between any two of
        # thousands of rows.
        rows = "SELECT rowid FROM memory_terms_index WHERE memory_terms_index MATCH %s ORDER BY rowid DESC LIMIT %s"
        sql = ", ".join([f"(SELECT group_concat(rowid) FROM ({rows}))"] * len(query_terms))
        values: list[Any] = [
            value for term in query_terms for value in (_match(term.term, term.is_prefix), MAX_PROPOSED)
        ]
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {sql}", values)
            return [np.fromstring(ids or "", dtype=np.int64, sep=",") for ids in cursor.fetchone()]
    space_ids = list(spaces)
    condition, values = ("AND space_id = ANY(%s) ", [space_ids]) if statistics.hold_few_rows(space_ids) else ("", [])
    sql = (
        f"SELECT ARRAY(SELECT id FROM memory_lexicalentry WHERE lexemes @@ query_terms.query {condition}ORDER BY id DESC LIMIT %s) "
        "FROM unnest(%s::tsquery[]) AS query_terms(query)"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, [*values, MAX_PROPOSED, [_tsquery(term.term, term.is_prefix) for term in query_terms]])
        return [np.asarray(ids, dtype=np.int64) for (ids,) in cursor.fetchall()]


def newest_with_term(query_term: QueryTerm, spaces: Iterable[uuid.UUID], limit: int) -> list[str]:
    """Return the newest `limit` exchanges in `spaces` that contain the term, newest first, as hexadecimal ids."""
    space_ids = list(spaces)
    if connection.vendor == "sqlite":
        placeholders = ", ".join(["%s"] * len(space_ids))
        # With CROSS JOIN, SQLite keeps the join order and looks up each match, instead of matching each row of the
        # spaces.
        sql = (
            "SELECT w.exchange_id FROM memory_terms_index CROSS JOIN memory_lexicalentry w ON w.id = memory_terms_index.rowid "
            f"WHERE memory_terms_index MATCH %s AND w.space_id IN ({placeholders}) ORDER BY memory_terms_index.rowid DESC LIMIT %s"
        )
        values: list[Any] = [
            _match(query_term.term, query_term.is_prefix),
            *(space_id.hex for space_id in space_ids),
            limit,
        ]
    else:
        sql = (
            "SELECT encode(uuid_send(exchange_id), 'hex') FROM memory_lexicalentry "
            "WHERE lexemes @@ %s::tsquery AND space_id = ANY(%s) ORDER BY id DESC LIMIT %s"
        )
        values = [_tsquery(query_term.term, query_term.is_prefix), space_ids, limit]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return [exchange_id for (exchange_id,) in cursor.fetchall()]


def terms_in_spaces(terms: Iterable[str], spaces: Iterable[uuid.UUID]) -> set[str]:
    """Return those of these terms that a row in these spaces contains."""
    return _terms_in_spaces([(term, False) for term in terms], list(spaces))


def rows_with_all_terms(terms: Iterable[str]) -> QuerySet[LexicalEntry]:
    """Return the rows in all spaces that contain every one of these terms."""
    if connection.vendor == "sqlite":
        condition = "id IN (SELECT rowid FROM memory_terms_index WHERE memory_terms_index MATCH %s)"
        query = " AND ".join(_match(term, False) for term in terms)
    else:
        condition = "lexemes @@ %s::tsquery"
        query = " & ".join(_tsquery(term, False) for term in terms)
    return LexicalEntry.objects.extra(where=[condition], params=[query])  # noqa: S610  (the statement is ours)


def exchange_ids_in_spaces(spaces: Iterable[uuid.UUID], rows: RowIds) -> list[str]:
    """Return the hexadecimal ids of the exchanges of these rows that are in `spaces`, in the order of the rows."""
    ids, space_ids = rows.tolist(), list(spaces)
    if connection.vendor == "sqlite":
        row_marks, space_marks = (", ".join(["%s"] * len(values)) for values in (ids, space_ids))
        sql = (
            f"SELECT id, exchange_id FROM memory_lexicalentry WHERE id IN ({row_marks}) AND space_id IN ({space_marks})"
        )
        values = [*ids, *(space_id.hex for space_id in space_ids)]
    else:
        sql = "SELECT id, encode(uuid_send(exchange_id), 'hex') FROM memory_lexicalentry WHERE id = ANY(%s) AND space_id = ANY(%s)"
        values = [ids, space_ids]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        exchange_ids = dict(cursor.fetchall())
    return [exchange_ids[id] for id in ids if id in exchange_ids]


def _is_single_unspaced(term: str) -> bool:
    """Return True for a single character of a script that is indexed in pairs."""
    return len(term) == 1 and term > "\u0e00"


def _closest_form(term: str, count: int, space_ids: Sequence[uuid.UUID]) -> tuple[str, int, bool]:
    if _terms_in_spaces([(term, True)], space_ids):
        prefix_count = _count_prefix_rows(term)
        if prefix_count > count:
            return term, prefix_count, True
    shortened = [term[:end] for end in range(len(term) - 1, _MIN_SHORTENED_LENGTH - 1, -1)]
    present = terms_in_spaces(shortened, space_ids)
    for form in shortened:
        if form in present:
            (form_count,) = statistics.document_frequencies([form]).values()
            return form, form_count, False
    return term, count, False


def _terms_in_spaces(forms: Sequence[tuple[str, bool]], space_ids: Sequence[uuid.UUID]) -> set[str]:
    """Return those of these terms or prefixes that a row in these spaces contains."""
    if not forms or not space_ids:
        return set()
    if connection.vendor == "sqlite":
        placeholders = ", ".join(["%s"] * len(space_ids))
        exists = (
            "EXISTS(SELECT 1 FROM memory_terms_index CROSS JOIN memory_lexicalentry w ON w.id = memory_terms_index.rowid "
            f"WHERE memory_terms_index MATCH %s AND w.space_id IN ({placeholders}))"
        )
        conditions = [exists] * len(forms)
        values: list[Any] = [
            value for form in forms for value in (_match(*form), *(space_id.hex for space_id in space_ids))
        ]
    else:
        conditions = [_PREFIX_EXISTS if is_prefix else _TERM_EXISTS for _, is_prefix in forms]
        values = [value for form in forms for value in (_tsquery(*form), list(space_ids))]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(conditions)}", values)
        found = cursor.fetchone()
    return {term for (term, _), is_present in zip(forms, found, strict=True) if is_present}


def _count_rows(terms: Sequence[str]) -> dict[str, int]:
    """Return the number of rows that contain each term, at most MAX_COUNTED; absent terms have 0."""
    if not terms:
        return {}
    if connection.vendor == "sqlite":
        placeholders = ", ".join(["%s"] * len(terms))
        sql = f"SELECT term, min(doc, %s) FROM memory_terms_vocabulary WHERE term IN ({placeholders})"
        values: list[Any] = [MAX_COUNTED, *terms]
    else:
        sql = (
            "SELECT term, (SELECT count(*) FROM (SELECT 1 FROM memory_lexicalentry WHERE lexemes @@ query_terms.query LIMIT %s) AS matches) "
            "FROM unnest(%s::text[], %s::tsquery[]) AS query_terms(term, query)"
        )
        values = [MAX_COUNTED, list(terms), [_tsquery(term, False) for term in terms]]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return dict.fromkeys(terms, 0) | dict(cursor.fetchall())


def _count_prefix_rows(term: str) -> int:
    """Return the number of rows with a term that begins with this one, at most MAX_COUNTED."""
    if connection.vendor == "sqlite":
        source, pattern = "memory_terms_index WHERE memory_terms_index MATCH %s", _match(term, True)
    else:
        source, pattern = "memory_lexicalentry WHERE lexemes @@ %s::tsquery", _tsquery(term, True)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT %s) AS matches", [pattern, MAX_COUNTED])
        return int(cursor.fetchone()[0])


def _match(term: str, is_prefix: bool) -> str:
    return f'"{term}"*' if is_prefix else f'"{term}"'


def _tsquery(term: str, is_prefix: bool) -> str:
    return f"'{term}':*" if is_prefix else f"'{term}'"
