"""Statements: stored with the exchanges that support them, and found for a reader."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.errors import NotFoundError
from memory.exchanges.lifecycle import NewExchange, remember_many
from memory.knowledge.sources import follow_sources, lock_with_statements
from memory.models import Exchange, Space, Statement, Support, is_findable
from memory.spaces import access
from memory.spaces.access import SpaceIds

MAX_STATEMENT_LENGTH = 280  # characters


@dataclass(frozen=True, slots=True)
class NewSupport:
    """An exchange with the words in it that support a statement, and the version of its text that was read."""

    exchange_id: uuid.UUID
    quote: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStatement:
    """A statement that was checked against its sources (`memory.knowledge.acceptance`).

    `id` is chosen by imports, so that they are not repeated; None: a new one.
    """

    id: uuid.UUID | None = None
    text: str
    kind: str
    topic: str
    supports: Sequence[NewSupport]


@transaction.atomic
def add_statements(space: Space, items: Sequence[NewStatement], *, read: Iterable[NewSupport]) -> list[Statement]:
    """Store the statements, and mark the exchanges in `read` as extracted; return the statements.

    A statement of which a source was changed, moved, hidden or forgotten since it was read is left out, and so is a text
    that the space has already, also as rejected, unless things are again as they were: then it was superseded before the
    last of its sources was said. Raises VectorStoreDisabledError.
    """
    read = list(read)
    used = {support.exchange_id for item in items for support in item.supports}
    wanted = used | {source.exchange_id for source in read}
    sources = _lock_sources(space, wanted)
    known = _known_texts(space, [item.text for item in items])
    accepted = [
        item
        for item in items
        if _are_unchanged(item.supports, sources)
        and (item.text not in known or _is_so_again(known[item.text], item.supports, sources))
    ]
    stored = _store(space, accepted, sources)
    _mark_as_read(read, sources)
    return stored


@transaction.atomic
def mark_as_read(space: Space, exchanges: Iterable[Exchange]) -> None:
    """Mark exchanges of the space as extracted, except those that were changed since they were read from the database."""
    read = [NewSupport(exchange.pk, "", exchange.version) for exchange in exchanges]
    _mark_as_read(read, _lock_sources(space, {source.exchange_id for source in read}))


def are_unchanged(space: Space, read: Sequence[NewSupport]) -> bool:
    """Lock the exchanges in `read`; return whether all are findable in the space, as they were when they were read."""
    return _are_unchanged(read, _lock_sources(space, {source.exchange_id for source in read}))


def topics_of(space_id: uuid.UUID) -> list[str]:
    """Return the 40 topics of the space with the most statements that are not hidden."""
    rows = Statement.objects.filter(is_findable("exchange"), exchange__space_id=space_id)
    counted = rows.values("topic").annotate(count=Count("pk")).order_by("-count", "topic")
    return [row["topic"] for row in counted[:40]]


def add_support(statement: Statement, support: NewSupport) -> None:
    """Add a source that repeats the statement, unless it changed meanwhile or was added before.

    The caller's transaction has locked the statement.
    """
    sources = _lock_sources(statement.exchange.space, {support.exchange_id})
    if not _are_unchanged([support], sources):
        return
    _row, is_new = Support.objects.get_or_create(
        statement=statement, exchange_id=support.exchange_id, defaults={"quote": support.quote}
    )
    if is_new:
        said_at = sources[support.exchange_id].timestamp
        statement.first_said_at = min(statement.first_said_at, said_at)
        statement.last_said_at = max(statement.last_said_at, said_at)
        statement.save(update_fields=["first_said_at", "last_said_at"])
        Exchange.objects.filter(pk=statement.pk).update(timestamp=statement.last_said_at)
        follow_sources([statement.pk])


def readable_statements(spaces: SpaceIds) -> QuerySet[Statement]:
    """Return the statements of these readable spaces that are neither rejected nor hidden with their sources."""
    findable = access.in_spaces(Exchange.objects.findable().filter(pk=OuterRef("pk")), spaces)
    # From the statements: with a join, SQLite would read all exchanges of the spaces.
    return Statement.objects.filter(Exists(findable))


def statement_to_change(person_id: uuid.UUID, statement_id: uuid.UUID) -> Statement:
    """Return the statement with its exchange and space, locked, if this person can read it. Raises NotFoundError."""
    lock_with_statements([statement_id])
    rows = (
        readable_statements(access.readable_space_ids(person_id))
        .select_for_update(of=("self",))
        .select_related("exchange__space")
    )
    found = rows.filter(pk=statement_id).first()
    if found is None:
        raise NotFoundError(_("Not found."))
    return found


def update_state(statement: Statement, state: Statement.State, *, by: uuid.UUID | None, **fields: object) -> None:
    """Set the state and other fields of a locked statement, and hide or show its exchange."""
    changed = {"state": state, "state_since": timezone.now(), "state_set_by_id": by, **fields}
    Statement.objects.filter(pk=statement.pk).update(revision=F("revision") + 1, **changed)
    statement.refresh_from_db()
    follow_sources([statement.pk])


def _mark_as_read(read: Iterable[NewSupport], sources: dict[uuid.UUID, Exchange]) -> None:
    unchanged = [source.exchange_id for source in read if _are_unchanged([source], sources)]
    Exchange.objects.filter(pk__in=unchanged).update(is_extracted=True)


def _lock_sources(space: Space, ids: set[uuid.UUID]) -> dict[uuid.UUID, Exchange]:
    """Return the findable exchanges of the space among `ids`, locked in the order of their ids."""
    rows = Exchange.objects.findable().select_for_update(of=("self",)).filter(space=space, pk__in=ids)
    return {row.pk: row for row in rows.order_by("pk")}


def _are_unchanged(supports: Iterable[NewSupport], sources: dict[uuid.UUID, Exchange]) -> bool:
    found = [(support, sources.get(support.exchange_id)) for support in supports]
    return all(source is not None and source.version == support.version for support, source in found)


def _known_texts(space: Space, texts: Iterable[str]) -> dict[str, list[Statement]]:
    """Return the statements of the space with one of these texts, by text."""
    rows = Statement.objects.filter(exchange__space=space, exchange__forgotten_at=None)
    known: dict[str, list[Statement]] = defaultdict(list)
    for row in rows.filter(exchange__user_message__in=list(texts)).select_related("exchange", "superseded_by"):
        known[row.exchange.user_message].append(row)
    return known


def _is_so_again(
    known: Iterable[Statement], supports: Iterable[NewSupport], sources: dict[uuid.UUID, Exchange]
) -> bool:
    """Return whether the known statements were all superseded, by what was said before one of these sources.

    If that was forgotten, the time of the decision counts.
    """
    said_at = max(sources[support.exchange_id].timestamp for support in supports)
    return all(
        row.state == Statement.State.SUPERSEDED
        and (row.superseded_by.last_said_at if row.superseded_by else row.state_since) < said_at
        for row in known
    )


def _store(space: Space, items: Sequence[NewStatement], sources: dict[uuid.UUID, Exchange]) -> list[Statement]:
    if not items:
        return []
    by_date = [
        sorted((sources[support.exchange_id] for support in item.supports), key=lambda row: row.timestamp)
        for item in items
    ]
    exchanges = remember_many(
        [
            NewExchange(
                id=item.id,
                space=space,
                owner_id=said[0].owner_id,
                user_message=item.text,
                source=Exchange.Source.KNOWLEDGE,
                timestamp=said[-1].timestamp,
            )
            for item, said in zip(items, by_date, strict=True)
        ]
    )
    now = timezone.now()
    statements = [
        Statement(
            exchange=exchange,
            kind=item.kind,
            topic=item.topic,
            state_since=now,
            first_said_at=said[0].timestamp,
            last_said_at=said[-1].timestamp,
        )
        for item, exchange, said in zip(items, exchanges, by_date, strict=True)
    ]
    Statement.objects.bulk_create(statements)
    Support.objects.bulk_create(
        Support(statement=statement, exchange_id=support.exchange_id, quote=support.quote)
        for statement, item in zip(statements, items, strict=True)
        for support in item.supports
    )
    return statements
