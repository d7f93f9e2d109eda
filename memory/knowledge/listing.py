"""Lists of statements: filtered, ordered by topic, date or use, with their readable sources."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from django.db.models import Count, Q, QuerySet

from memory.knowledge.staleness import unconfirmed_since
from memory.knowledge.statements import readable_statements
from memory.models import Statement, StatementConflict, Support, is_findable
from memory.retrieval.recall_log import recall_counts
from memory.spaces.access import SpaceIds
from memory.utils.lookups import contains

BY_TOPIC, NEWEST, MOST_RECALLED = "topic", "newest", "recalled"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFilter:
    """The conditions and the order of a list; None and "" are no condition.

    `author_id`: a person said it or a part of it. `kind`: one of Statement.Kind. `since`: it was said again on this day or
    later. `to_review`: conflicting and unconfirmed statements.
    """

    space_id: uuid.UUID | None = None
    author_id: uuid.UUID | None = None
    kind: str = ""
    state: str = ""
    since: date | None = None
    text: str = ""
    to_review: bool = False
    order: str = BY_TOPIC


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """Facts about a statement beside its text; `sources` are the findable exchanges that support it.

    `unconfirmed_since`: when it was last said or confirmed, if that is long ago for its kind, else None.
    """

    kind: str
    topic: str
    state: str
    first_said_at: datetime
    last_said_at: datetime
    sources: tuple[uuid.UUID, ...]
    unconfirmed_since: datetime | None


def statement_ids(spaces: SpaceIds, wanted: StatementFilter) -> list[uuid.UUID]:
    """Return the readable statements of a list in its order.

    By topic: topics with a conflict first, then those with the latest statement; in a topic, conflicting ones first and each
    superseded one after its successor.
    """
    rows = _filtered(spaces, wanted)
    if wanted.order == NEWEST:
        return list(rows.order_by("-last_said_at", "pk").values_list("pk", flat=True))
    if wanted.order == MOST_RECALLED:
        newest = list(rows.order_by("-last_said_at", "pk").values_list("pk", flat=True))
        uses = recall_counts(newest, spaces=spaces)
        return sorted(newest, key=lambda id: -uses.get(id, 0))
    topics: dict[str, list[Statement]] = defaultdict(list)
    for row in rows.only("topic", "state", "last_said_at", "superseded_by").order_by("-last_said_at", "pk"):
        topics[row.topic].append(row)
    ordered = sorted(topics.values(), key=lambda topic: not any(map(_is_conflicting, topic)))
    return [row.pk for topic in ordered for row in _with_predecessors(topic)]


def count_to_review(spaces: SpaceIds, space_id: uuid.UUID | None) -> int:
    """Return the number of readable statements that are conflicting or unconfirmed."""
    return _filtered(spaces, StatementFilter(space_id=space_id, to_review=True)).count()


def authors_of_statements(spaces: SpaceIds) -> list[tuple[uuid.UUID, str]]:
    """Return the people who said something that supports a readable statement, by name: their ids and names."""
    said = Support.objects.filter(is_findable("exchange"), statement__in=readable_statements(spaces))
    people = said.values_list("exchange__owner_id", "exchange__owner__name").distinct()
    return list(people.order_by("exchange__owner__name", "exchange__owner_id"))


def count_by_topic(spaces: SpaceIds, wanted: StatementFilter) -> dict[str, int]:
    """Return the number of statements of each topic of a list."""
    return dict(_filtered(spaces, wanted).values_list("topic").annotate(n=Count("pk")).order_by())


def load_statements(ids: Sequence[uuid.UUID]) -> list[Statement]:
    """Return the statements in this order, with their exchanges, spaces and the people who decided about them."""
    related = ("exchange__space", "exchange__owner", "confirmed_by", "state_set_by", "superseded_by__exchange")
    rows = Statement.objects.select_related(*related).in_bulk(ids)
    return [rows[id] for id in ids if id in rows]


def sources_of(statements: Iterable[Statement]) -> dict[uuid.UUID, list[Support]]:
    """Return the findable sources of these statements, oldest first, by statement."""
    rows = Support.objects.filter(is_findable("exchange"), statement__in=list(statements))
    sources: dict[uuid.UUID, list[Support]] = defaultdict(list)
    for row in rows.select_related("exchange__owner").order_by("exchange__timestamp", "exchange_id"):
        sources[row.statement_id].append(row)
    return sources


def statement_facts(ids: Sequence[uuid.UUID]) -> dict[uuid.UUID, StatementFacts]:
    """Return what is known about these readable statements, without a query if there are none."""
    if not ids:
        return {}
    rows = Statement.objects.in_bulk(ids).values()
    sources = sources_of(rows)
    return {
        row.pk: StatementFacts(
            kind=row.kind,
            topic=row.topic,
            state=row.state,
            first_said_at=row.first_said_at,
            last_said_at=row.last_said_at,
            sources=tuple(source.exchange_id for source in sources[row.pk]),
            unconfirmed_since=unconfirmed_since(row),
        )
        for row in rows
    }


def conflicts_of(statements: Iterable[Statement]) -> dict[uuid.UUID, list[Statement]]:
    """Return the statements that are not hidden and contradict these, with their exchanges, by statement."""
    ids = [row.pk for row in statements if row.state == Statement.State.CONFLICTING]
    pairs = StatementConflict.objects.filter(
        Q(one__in=ids) | Q(other__in=ids), is_findable("one__exchange"), is_findable("other__exchange")
    )
    found: dict[uuid.UUID, list[Statement]] = defaultdict(list)
    for pair in pairs.select_related("one__exchange", "other__exchange").order_by("pk") if ids else ():
        found[pair.one_id].append(pair.other)
        found[pair.other_id].append(pair.one)
    return found


def _filtered(spaces: SpaceIds, wanted: StatementFilter) -> QuerySet[Statement]:
    rows = readable_statements(spaces)
    if wanted.space_id is not None:
        rows = rows.filter(exchange__space_id=wanted.space_id)
    if wanted.author_id is not None:
        said = Support.objects.filter(is_findable("exchange"), exchange__owner_id=wanted.author_id)
        rows = rows.filter(pk__in=said.values("statement"))
    if wanted.kind:
        rows = rows.filter(kind=wanted.kind)
    if wanted.state:
        rows = rows.filter(state=wanted.state)
    if wanted.since is not None:
        rows = rows.filter(last_said_at__gte=datetime.combine(wanted.since, time(), UTC))
    for word in wanted.text.split():
        rows = rows.filter(contains("exchange__user_message", word) | contains("topic", word))
    if wanted.to_review:
        with_one = rows.annotate(n=Count("supports", filter=is_findable("supports__exchange"))).filter(n=1).values("pk")
        unconfirmed = Q(state=Statement.State.CURRENT, confirmed_at=None, pk__in=with_one)
        rows = rows.filter(Q(state=Statement.State.CONFLICTING) | unconfirmed)
    return rows


def _is_conflicting(row: Statement) -> bool:
    return row.state == Statement.State.CONFLICTING


def _with_predecessors(topic: Sequence[Statement]) -> list[Statement]:
    """Return the statements of a topic: conflicting ones first, and each superseded one after the one that did it."""
    predecessors: dict[uuid.UUID | None, list[Statement]] = defaultdict(list)
    known = {row.pk for row in topic}
    for row in topic:
        is_below = row.superseded_by_id in known and row.state == Statement.State.SUPERSEDED
        predecessors[row.superseded_by_id if is_below else None].append(row)
    ordered: list[Statement] = []
    waiting = sorted(predecessors.pop(None, []), key=lambda row: not _is_conflicting(row))
    while waiting:
        row = waiting.pop(0)
        ordered.append(row)
        waiting = [*predecessors.pop(row.pk, []), *waiting]
    return ordered
