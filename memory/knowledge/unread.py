"""The exchanges of a space from which no statements were extracted yet, in clusters of similar ones.

Exchanges whose message states nothing are told by a probe, so that small talk, general tasks and questions are not sent
to the model.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from django.conf import settings
from django.db.models import Exists, Max, OuterRef, QuerySet

from memory.embeddings.base import Vectors, normalise
from memory.index import generations, store
from memory.index.vectors import vector_ids
from memory.models import EmbeddingJob, Exchange, IndexGeneration, Job
from memory.retrieval import probes
from memory.retrieval.levels import level_of

# A space is read when so many exchanges are unread, or when nothing was stored in it for `knowledge.quiet_minutes`.
_ENOUGH = 40
# Exchanges that are compared with each other: their number grows with the square, the work of a space only linearly,
# since later exchanges are compared with the statements that were extracted from earlier ones.
BATCH_SIZE = 400
# A message below this probability states nothing: of held-out ones that do, none is below it, and of small talk and
# general tasks .97 (docs/decisions/0010-probes.md). The vector of a long message can represent only a part of it.
_IS_INFORMATIVE, _MAX_SHORT = 0.04, 200  # characters


@dataclass(frozen=True, slots=True)
class Batch:
    """Unread exchanges: clusters on one subject, each in order of date, and those whose message states nothing."""

    clusters: list[list[Exchange]]
    uninformative: list[Exchange]


def unread_exchanges(space_id: uuid.UUID) -> QuerySet[Exchange]:
    """Return the findable exchanges of the space that are indexed and not read, oldest first, with their owners."""
    # Correlated, so that only the jobs of unread exchanges are read, which an index has.
    indexed = EmbeddingJob.objects.filter(
        exchange=OuterRef("pk"), state=Job.State.DONE, generation=generations.active_generation()
    )
    rows = Exchange.objects.findable().filter(Exists(indexed), space_id=space_id, is_extracted=False)
    rows = rows.exclude(source=Exchange.Source.KNOWLEDGE)
    return rows.select_related("owner").order_by("timestamp", "pk")


def is_due(space_id: uuid.UUID, now: datetime) -> bool:
    """Return whether the space has unread exchanges and was quiet, or has enough of them."""
    unread = unread_exchanges(space_id)
    newest = unread.aggregate(newest=Max("created_at"))["newest"]
    quiet_since = now - timedelta(minutes=settings.CATO.knowledge.quiet_minutes)
    return newest is not None and (newest <= quiet_since or unread[:_ENOUGH].count() >= _ENOUGH)


def next_batch(space_id: uuid.UUID) -> Batch:
    """Return the oldest unread exchanges of the space.

    Raises VectorStoreUnavailableError and VectorStoreDisabledError.
    """
    exchanges = list(unread_exchanges(space_id)[:BATCH_SIZE])
    generation = generations.active_generation()
    vectors = message_vectors([exchange.pk for exchange in exchanges], generation)
    uninformative = _uninformative(exchanges, vectors, generation)
    skipped = {exchange.pk for exchange in uninformative}
    known = [exchange for exchange in exchanges if exchange.pk in vectors and exchange.pk not in skipped]
    clusters = [[exchange] for exchange in exchanges if exchange.pk not in vectors]
    if known:
        cosines = np.stack([vectors[exchange.pk] for exchange in known])
        same_subject = level_of(generation.provider, generation.model).same_subject
        groups = cluster(cosines @ cosines.T, same_subject, settings.CATO.knowledge.max_cluster)
        clusters = [[known[index] for index in group] for group in groups] + clusters
    return Batch(clusters, uninformative)


def _uninformative(
    exchanges: Sequence[Exchange], vectors: Mapping[uuid.UUID, Vectors], generation: IndexGeneration
) -> list[Exchange]:
    """Return those with a short message that states nothing; notes and chunks, which have no answer, are none."""
    short = [
        exchange
        for exchange in exchanges
        if exchange.pk in vectors and exchange.assistant_message and len(exchange.user_message) <= _MAX_SHORT
    ]
    if not short:
        return []
    stacked = np.stack([vectors[exchange.pk] for exchange in short])
    values = probes.read_document_trait(probes.INFORMATIVE, stacked, generation.provider, generation.model)
    if values is None:
        return []
    return [exchange for exchange, value in zip(short, values, strict=True) if value < _IS_INFORMATIVE]


def cluster(similarities: Vectors, level: float, max_size: int) -> list[list[int]]:
    """Return groups of indexes, ascending, joined by the pairs of `similarities` (n, n) that reach `level`.

    The most similar pairs are joined first; a group grows to at most `max_size`.
    """
    count = len(similarities)
    group_of = {index: [index] for index in range(count)}
    first, second = np.nonzero(np.triu(similarities >= level, k=1))
    order = np.argsort(-similarities[first, second], kind="stable")
    for one, other in zip(first[order].tolist(), second[order].tolist(), strict=True):
        group, joined = group_of[one], group_of[other]
        if group is not joined and len(group) + len(joined) <= max_size:
            group += joined
            group_of.update(dict.fromkeys(joined, group))
    return [sorted(group) for index, group in group_of.items() if index == min(group)]


def message_vectors(exchange_ids: Sequence[uuid.UUID], generation: IndexGeneration) -> dict[uuid.UUID, Vectors]:
    """Return the normalised vectors (dimension,) of the beginnings of the messages of those that are indexed.

    Raises VectorStoreUnavailableError and VectorStoreDisabledError.
    """
    jobs = EmbeddingJob.objects.filter(exchange_id__in=exchange_ids, generation=generation, state=Job.State.DONE)
    wanted: dict[str, dict[str, uuid.UUID]] = defaultdict(dict)
    for collection, exchange_id, version, parts in jobs.values_list(
        "collection__name", "exchange_id", "version", "parts"
    ):
        if parts:
            wanted[collection][vector_ids(exchange_id, version, min(parts, 2))[-1]] = exchange_id
    found: dict[uuid.UUID, Vectors] = {}
    for collection, ids in wanted.items():
        for vector_id, vector in store.vectors(collection, list(ids)).items():
            found[ids[vector_id]] = normalise(vector)
    return found
