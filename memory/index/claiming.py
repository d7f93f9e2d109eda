"""The order in which due exchanges are embedded: messages and notes, what came in bulk, documents."""

from __future__ import annotations

import uuid
from collections import defaultdict
from functools import partial
from itertools import accumulate

from django.db.models import Q, QuerySet

from memory import jobs
from memory.index import generations
from memory.models import DocumentVersion, EmbeddingJob, Exchange, IndexGeneration
from memory.utils.fairness import Turns

_BATCH_SIZE = 64
# Characters per batch for a local model: a few seconds of work for one core, during which other work waits, and far less
# than a lease. A remote provider gets whole batches.
_LOCAL_BATCH_CHARS = 12_000
# Of so many batches in a row, one is of documents and one of what came in bulk. Otherwise these would wait for as long as
# conversations keep the worker busy.
_ROUND = 8
# What is embedded of an exchange has about this length at most.
_MAX_EXCHANGE_CHARS = 12_000
_turns: Turns[uuid.UUID] = Turns()
_Stage = DocumentVersion.Stage


def claim_next(batch: int) -> list[EmbeddingJob]:
    """Claim the batch with this number: of what people have just written, of what came in bulk, or of a document."""
    due = (
        EmbeddingJob.objects.filter(exchange__forgotten_at=None, generation__in=generations.embeddable_generations())
        .select_related("exchange__space", "exchange__previous", "generation", "collection")
        .order_by("due_at", "id")
    )
    conversations, documents = due.filter(exchange__source_file=""), due.exclude(exchange__source_file="")
    is_active = Q(generation__state=IndexGeneration.State.ACTIVE)
    is_imported = Q(exchange__source=Exchange.Source.IMPORT)
    written = partial(_claim_batch, conversations.filter(is_active, ~is_imported, exchange__record=None))
    in_bulk = partial(_claim_batch, conversations.filter(~is_active | is_imported | Q(exchange__record__isnull=False)))
    of_document = partial(_claim_chunks, documents)
    first = {0: of_document, _ROUND // 2: in_bulk}.get(batch % _ROUND, written)
    return next(filter(None, (claim() for claim in (first, written, in_bulk, of_document))), [])


def _claim_batch(rows: QuerySet[EmbeddingJob]) -> list[EmbeddingJob]:
    """Claim as many of these rows as make a batch for the model, and at least one."""
    current = IndexGeneration.objects.exclude(state=IndexGeneration.State.RETIRED)
    if not current.filter(provider="local").exists():
        return jobs.claim(rows, _BATCH_SIZE)
    sizes = jobs.due(rows).values_list("exchange__size", flat=True)[:_BATCH_SIZE]
    totals = accumulate(min(size, _MAX_EXCHANGE_CHARS) for size in sizes)
    return jobs.claim(rows, max(1, sum(total <= _LOCAL_BATCH_CHARS for total in totals)))


def _claim_chunks(due: QuerySet[EmbeddingJob]) -> list[EmbeddingJob]:
    """Claim a batch of chunks from the shortest document of the person whose last turn is longest ago."""
    incomplete = DocumentVersion.objects.filter(stage__in=[_Stage.CHUNKING, _Stage.EMBEDDING])
    versions: dict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)
    for person_id, version_id in incomplete.order_by("total_chunks", "pk").values_list("uploaded_by_id", "pk"):
        versions[person_id].append(version_id)
    for person_id in _turns.in_order(versions):
        for version_id in versions[person_id]:
            chunks = due.filter(exchange__chunks__version=version_id).order_by("exchange__chunks__index")
            if claimed := _claim_batch(chunks):
                _turns.note(person_id)
                return claimed
    # Chunks of live versions that are embedded again.
    return _claim_batch(due.order_by("exchange__total_chunks", "due_at", "id"))
