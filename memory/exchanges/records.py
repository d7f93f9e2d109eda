"""Store and delete records, which other programs store under their own ids."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import ngettext
from numpy.typing import NDArray

from memory.embeddings.base import normalise
from memory.errors import InvalidInputError, RecordConflictError, VectorStoreDisabledError
from memory.exchanges.forgetting import forget
from memory.exchanges.lifecycle import NewExchange, remember_many, update_exchange
from memory.exchanges.metadata import Checked, validate_metadata
from memory.exchanges.requeueing import requeue_changed
from memory.filters import parse_filter, to_sql
from memory.index import generations
from memory.knowledge.sources import lock_with_statements
from memory.models import Event, Exchange, Record, Space
from memory.spaces.access import SpaceIds, ensure_open, in_spaces
from memory.text import clean_text

MAX_RECORDS = 1000
MAX_ID_LENGTH = 255

Vector = Sequence[float] | NDArray[np.float32]
# Maximum number of conflicting ids in a message, and of characters of each.
_SHOWN_IDS, _SHOWN_CHARS = 20, 80
# A condition on exchanges.
IS_RECORD = Q(record__isnull=False, forgotten_at=None)


@dataclass(frozen=True, slots=True)
class NewRecord:
    """A record to store under `id`. Without a vector, its text is embedded.

    `timestamp` is the time of a new record, None: now.
    """

    id: str
    text: str
    metadata: Mapping[str, object] = field(default_factory=dict)
    vector: Vector | None = None
    timestamp: datetime | None = None


@dataclass(frozen=True, slots=True)
class _ValidatedRecord:
    id: str
    text: str
    metadata: Checked
    vector: bytes | None
    timestamp: datetime | None


def upsert_records(records: Sequence[NewRecord], *, space: Space, owner_id: uuid.UUID) -> list[uuid.UUID]:
    """Store these records in one transaction and return their exchange ids in the same order.

    A known id keeps its exchange: text, metadata and vector are replaced, and the version number increases. Unchanged
    records are skipped. Only the owner can replace a record. The caller has checked that `owner_id` can write to
    `space`. Raises InvalidInputError, also for an archived project, VectorStoreDisabledError,
    RecordConflictError if an id belongs to another person, and EmbeddingError if a vector cannot be checked because
    the model's dimension is unknown.
    """
    if not settings.CATO.vector_store.enabled:
        raise VectorStoreDisabledError
    ensure_open(space)
    validated = _validate_records(records)
    with transaction.atomic():
        # The lock serializes programs that send the same new id. Exchanges can still be added to the space.
        Space.objects.select_for_update(no_key=True).get(pk=space.pk)
        # The id of a forgotten exchange can be used again.
        Record.objects.filter(
            space=space, name__in=[r.id for r in validated], exchange__forgotten_at__isnull=False
        ).delete()
        rows = Record.objects.filter(space=space, name__in=[r.id for r in validated]).select_related("exchange")
        known = {row.name: row for row in rows}
        _require_ownership(known.values(), owner_id)
        _replace([(known[r.id], r) for r in validated if r.id in known])
        created = _create([r for r in validated if r.id not in known], space, owner_id)
    ids = {name: row.exchange_id for name, row in known.items()} | created
    return [ids[r.id] for r in validated]


def delete_records(
    *,
    spaces: SpaceIds,
    by: uuid.UUID,
    ids: Iterable[str] | None = None,
    filters: Mapping[str, object] | None = None,
) -> int:
    """Forget the records of `spaces` that have one of `ids` and match `filters`; return their number.

    Their ids can be used again at once. The caller has checked that `by` can delete in `spaces`. Raises
    InvalidInputError, also if neither `ids` nor `filters` is given, so that an omission does not delete everything.
    """
    if ids is None and filters is None:
        raise InvalidInputError("Say which records to delete, by ids or by filters.")
    rows = records_in(spaces)
    if ids is not None:
        rows = rows.filter(record__name__in=_validate_names(ids))
    if filters is not None:
        rows = rows.filter(to_sql(parse_filter(filters)))
    with transaction.atomic():
        found = list(rows.values_list("id", flat=True))
        return len(forget(found, by=by))


def records_in(spaces: SpaceIds) -> QuerySet[Exchange]:
    """Return the exchanges of the records in these spaces."""
    return in_spaces(Exchange.objects.filter(IS_RECORD).select_related("record"), spaces)


def _validate_records(records: Sequence[NewRecord]) -> list[_ValidatedRecord]:
    if len(records) > MAX_RECORDS:
        raise InvalidInputError(f"Send at most {MAX_RECORDS} records at once, not {len(records)}.")
    names = _validate_names(record.id for record in records)
    if len(set(names)) < len(names):
        duplicate = next(name for name in names if names.count(name) > 1)
        raise InvalidInputError(f"The record {duplicate:.80} occurs twice.")
    return [_validate_record(name, record) for name, record in zip(names, records, strict=True)]


def _validate_record(name: str, record: NewRecord) -> _ValidatedRecord:
    text = clean_text(record.text)
    if not text.strip():
        raise InvalidInputError(f"The record {name:.80} has no text.")
    vector = None if record.vector is None else validate_vector(record.vector).astype("<f4").tobytes()
    return _ValidatedRecord(name, text, validate_metadata(record.metadata), vector, record.timestamp)


def _validate_names(ids: Iterable[str]) -> list[str]:
    names = [clean_text(id) for id in ids]
    if len(names) > MAX_RECORDS:
        raise InvalidInputError(f"Name at most {MAX_RECORDS} records at once, not {len(names)}.")
    if not all(1 <= len(name) <= MAX_ID_LENGTH for name in names):
        raise InvalidInputError(f"A record's id is a text of 1 to {MAX_ID_LENGTH} characters.")
    return names


def validate_vector(numbers: Vector) -> NDArray[np.float32]:
    """Return the vector scaled to length 1. Raises InvalidInputError if it does not fit the active generation."""
    try:
        vector = np.asarray(numbers, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise InvalidInputError("A vector is a list of numbers.") from error
    generation = generations.active_generation()
    # A client's vector must not set the dimension: a wrong one would then apply to all embeddings.
    dimension = generation.dimension or generations.embedder_for(generation).dimension
    if vector.shape != (dimension,):
        raise InvalidInputError(
            f"The index holds vectors of {dimension} numbers ({generation.model}), not {vector.size}."
        )
    if not np.isfinite(vector).all() or not vector.any():
        raise InvalidInputError("A vector has finite numbers that are not all zero.")
    return normalise(vector)


def _create(records: Sequence[_ValidatedRecord], space: Space, owner_id: uuid.UUID) -> dict[str, uuid.UUID]:
    exchanges = remember_many(
        [
            NewExchange(
                space=space,
                owner_id=owner_id,
                user_message=r.text,
                source=Exchange.Source.API,
                timestamp=r.timestamp,
                metadata=r.metadata,
            )
            for r in records
        ],
        event=Event.Kind.RECORD_STORED,
    )
    pairs = list(zip(records, exchanges, strict=True))
    active = generations.active_generation()
    Record.objects.bulk_create(
        [Record(exchange=e, space=space, name=r.id, vector=r.vector, generation=active) for r, e in pairs]
    )
    return {r.id: e.pk for r, e in pairs}


def _require_ownership(known: Iterable[Record], owner_id: uuid.UUID) -> None:
    """Raise RecordConflictError if another person owns one of these records."""
    names = sorted(row.name for row in known if row.exchange.owner_id != owner_id)
    if not names:
        return
    shown = ", ".join(name[:_SHOWN_CHARS] for name in names[:_SHOWN_IDS])
    message = ngettext(
        "The record %(ids)s belongs to another person, so nothing was stored. Use an id of your own for it.",
        "%(count)s records belong to another person, so nothing was stored. Use ids of your own for them: %(ids)s",
        len(names),
    )
    raise RecordConflictError(
        message % {"ids": shown if len(names) <= _SHOWN_IDS else f"{shown} …", "count": len(names)}
    )


def _replace(pairs: Sequence[tuple[Record, _ValidatedRecord]]) -> None:
    active = generations.active_generation()
    lock_with_statements(row.exchange_id for row, _record in pairs)
    for row, record in pairs:
        exchange = row.exchange
        vector = None if row.vector is None else bytes(row.vector)
        if (exchange.user_message, exchange.metadata, vector) == (record.text, record.metadata, record.vector):
            continue
        Record.objects.filter(pk=row.pk).update(vector=record.vector, generation=active)
        Exchange.objects.filter(pk=exchange.pk).update(timestamp=timezone.now())
        update_exchange(exchange, user_message=record.text, assistant_message="", metadata=record.metadata)
        if vector != record.vector:
            requeue_changed([exchange.pk], force=True)
