"""What happens to statements when their sources are forgotten, moved, changed, hidden or shown again."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from memory.events import record_events
from memory.models import Event, Exchange, Statement, StatementConflict, Support, is_findable
from memory.utils.batching import batched

_BATCH_SIZE = 500


def lock_with_statements(exchange_ids: Iterable[uuid.UUID]) -> None:
    """Lock the exchanges, those that follow them, the statements that they support, and the other sources of these.

    Forgetting, hiding or moving the exchanges can write all of these rows. They are locked in the order of their ids, so
    that what changes another one of them at the same time waits here, before it has written anything. What changes several
    sets of exchanges in one transaction locks all of them first.
    """
    ids = set(exchange_ids)
    for batch in batched(list(ids), _BATCH_SIZE):
        supported = Support.objects.filter(exchange_id__in=batch).values("statement_id")
        pairs = Support.objects.filter(statement_id__in=supported).values_list("statement_id", "exchange_id")
        ids.update(Exchange.objects.filter(previous_id__in=batch).values_list("id", flat=True), *pairs)
    for batch in batched(sorted(ids), _BATCH_SIZE):
        list(Exchange.objects.select_for_update().filter(id__in=batch).order_by("id").values_list("id"))


def drop_sources(exchange_ids: Collection[uuid.UUID]) -> dict[uuid.UUID, list[uuid.UUID]]:
    """Remove these exchanges from the sources of statements; return by exchange the statements to forget with it.

    A statement that has lost a source may say more than its other sources do. It is forgotten, and these are read again, so
    that the next extraction writes it anew. It is kept if one of them contains its text, and a rejected one while it has
    any source, so that it does not come back. The caller forgets what is returned in the same transaction.
    """
    lost = Support.objects.filter(exchange_id__in=exchange_ids)
    pairs = list(lost.values_list("statement_id", "exchange_id"))
    _read_again(exchange_ids)
    if not pairs:
        return {}
    lost.delete()
    statements = Statement.objects.filter(pk__in=[statement for statement, _source in pairs])
    remaining = _texts_of_sources(statements)
    gone = {row.pk for row in statements.select_related("exchange") if not _stays(row, remaining.get(row.pk, ()))}
    _follow_remaining(statements.exclude(pk__in=gone))
    unread = Support.objects.filter(statement_id__in=gone).values_list("exchange_id", flat=True)
    _read_again(unread)
    result: dict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    for statement in sorted(gone):
        result[next(source for other, source in pairs if other == statement)].append(statement)
    return dict(result)


def sources_changed(exchange: Exchange) -> list[uuid.UUID]:
    """Have a changed exchange read again, and drop it as a source if it lacks the words that support a statement.

    Return the statements to forget.
    """
    exchange.is_extracted = False
    exchange.save(update_fields=["is_extracted"])
    quotes = Support.objects.filter(exchange=exchange).values_list("quote", flat=True)
    texts = (exchange.user_message, exchange.assistant_message)
    if all(any(quote in text for text in texts) for quote in quotes):
        return []
    return [id for ids in drop_sources([exchange.pk]).values() for id in ids]


def statements_supported_by(exchanges: Collection[uuid.UUID] | QuerySet[Exchange]) -> list[uuid.UUID]:
    """Return the statements of which one of these exchanges is a source."""
    supports = Support.objects.filter(exchange__in=exchanges)
    return list(supports.values_list("statement_id", flat=True).distinct())


def source_ids(statement_id: uuid.UUID) -> list[uuid.UUID]:
    """Return the exchanges that support a statement."""
    return list(Support.objects.filter(statement_id=statement_id).values_list("exchange_id", flat=True))


def follow_sources(statement_ids: Sequence[uuid.UUID]) -> None:
    """Hide the statements that are rejected or of which no source is findable, and show the others."""
    if not statement_ids:
        return
    with_source = Support.objects.filter(is_findable("exchange"), statement__in=statement_ids)
    shown = Statement.objects.filter(pk__in=with_source.values("statement")).exclude(state=Statement.State.REJECTED)
    exchanges = Exchange.objects.filter(pk__in=statement_ids, forgotten_at=None)
    _set_inactive(exchanges.filter(pk__in=shown.values("pk")), is_inactive=False)
    _set_inactive(exchanges.exclude(pk__in=shown.values("pk")), is_inactive=True)


def delete_statements(exchange_ids: Collection[uuid.UUID]) -> None:
    """Delete the statements of these exchanges, which are being forgotten, and end their conflicts."""
    gone = Statement.objects.filter(pk__in=exchange_ids)
    conflicts = StatementConflict.objects.filter(Q(one__in=gone) | Q(other__in=gone))
    partners = {id for pair in conflicts.values_list("one_id", "other_id") for id in pair}
    gone.delete()
    in_conflict = StatementConflict.objects.filter(Q(one=OuterRef("pk")) | Q(other=OuterRef("pk")))
    settled = Statement.objects.filter(pk__in=partners, state=Statement.State.CONFLICTING).exclude(Exists(in_conflict))
    settled.update(state=Statement.State.CURRENT, state_since=timezone.now(), state_set_by=None)


def _follow_remaining(statements: QuerySet[Statement]) -> None:
    """Give statements that have lost a source the first author, and the first and last date, of the others."""
    for statement in statements.prefetch_related("supports__exchange"):
        said = sorted((support.exchange for support in statement.supports.all()), key=lambda row: row.timestamp)
        first, last = said[0], said[-1]
        Statement.objects.filter(pk=statement.pk).update(first_said_at=first.timestamp, last_said_at=last.timestamp)
        Exchange.objects.filter(pk=statement.pk).update(owner=first.owner_id, timestamp=last.timestamp)


def _read_again(exchange_ids: Collection[uuid.UUID] | QuerySet[Support, uuid.UUID]) -> None:
    Exchange.objects.filter(pk__in=exchange_ids, is_extracted=True).update(is_extracted=False)


def _set_inactive(exchanges: QuerySet[Exchange], *, is_inactive: bool) -> None:
    changed = list(exchanges.exclude(is_inactive=is_inactive).only("thread_id", "space_id"))
    record_events(Event.Kind.EXCHANGE_HIDDEN if is_inactive else Event.Kind.EXCHANGE_SHOWN, changed)
    Exchange.objects.filter(pk__in=[row.pk for row in changed]).update(is_inactive=is_inactive)


def _texts_of_sources(statements: Iterable[Statement]) -> dict[uuid.UUID, list[str]]:
    rows = Support.objects.filter(statement__in=statements).select_related("exchange")
    texts: dict[uuid.UUID, list[str]] = defaultdict(list)
    for row in rows:
        texts[row.statement_id] += [row.exchange.user_message, row.exchange.assistant_message]
    return texts


def _stays(statement: Statement, remaining: Sequence[str]) -> bool:
    if statement.state == Statement.State.REJECTED:
        return bool(remaining)
    return any(statement.exchange.user_message in text for text in remaining)
