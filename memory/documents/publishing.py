"""Publish embedded versions: replace the previous live version in one transaction."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery, UUIDField, Value
from django.db.models.functions import Coalesce
from django.utils import timezone

from memory import jobs
from memory.documents.metadata import update_chunk_metadata
from memory.events import record_events
from memory.index import generations
from memory.knowledge.sources import follow_sources, statements_supported_by
from memory.models import Chunk, Document, DocumentVersion, EmbeddingJob, Event, Exchange, Job

Stage = DocumentVersion.Stage


def publish_ready_versions(versions: QuerySet[DocumentVersion] | None = None) -> None:
    """Publish each version (of `versions`) whose chunks are all indexed; mark those with a failed chunk as failed.

    Fast if no version is in progress; any process may call it.
    """
    candidates = DocumentVersion.objects.all() if versions is None else versions
    for version in candidates.filter(stage=Stage.EMBEDDING, document__forgotten_at=None).distinct():
        embeddings = version_embedding_jobs(version)
        failed = embeddings.filter(state=Job.State.FAILED).first()
        if failed is not None:
            _fail(version, failed.error)
        elif not embeddings.exclude(state=Job.State.DONE).exists():
            _publish(version)


def version_embedding_jobs(version: DocumentVersion) -> QuerySet[EmbeddingJob]:
    """Return the embeddings of this version's chunks in the active generation, without forgotten ones."""
    return EmbeddingJob.objects.filter(
        exchange__chunks__version=version, exchange__forgotten_at=None, generation=generations.active_generation()
    )


@transaction.atomic
def _fail(version: DocumentVersion, error: str) -> None:
    row = DocumentVersion.objects.filter(pk=version.pk, stage=Stage.EMBEDDING)
    if row.update(stage=Stage.FAILED, state=Job.State.FAILED, error=error):
        record_events(Event.Kind.DOCUMENT_FAILED, Document.objects.filter(pk=version.document_id))


@transaction.atomic
def _publish(version: DocumentVersion) -> None:
    document = Document.objects.select_for_update().get(pk=version.document_id)
    version = DocumentVersion.objects.select_for_update().get(pk=version.pk)
    if version.stage != Stage.EMBEDDING or document.forgotten_at is not None:
        return
    old, new_chunks = document.live_version, Chunk.objects.filter(version=version)
    if old is not None:
        hide_chunks(Chunk.objects.filter(version=old).exclude(exchange__in=new_chunks.values("exchange")))
        DocumentVersion.objects.filter(pk=old.pk).update(stage=Stage.REPLACED)
    _link_chunks_in_order(version)
    version.document = document
    update_chunk_metadata(version)
    now = timezone.now()
    DocumentVersion.objects.filter(pk=version.pk).update(stage=Stage.READY, ready_at=now, error="")
    Document.objects.filter(pk=document.pk).update(live_version=version)
    record_events(Event.Kind.DOCUMENT_PUBLISHED, [document])
    jobs.wake_worker_on_commit("cleanup_documents")


def hide_chunks(chunks: QuerySet[Chunk]) -> None:
    """Hide the chunks, and statements that have no other source."""
    hidden = Exchange.objects.filter(pk__in=chunks.values("exchange"))
    hidden.update(is_inactive=True)
    follow_sources(statements_supported_by(hidden))


def _link_chunks_in_order(version: DocumentVersion) -> None:
    """Activate the chunks with their position in this version and a link to the previous one."""
    chunks = Chunk.objects.filter(version=version)
    # Not `chunks.filter`: with it, SQLite scans all chunks of the version for each chunk.
    of = Coalesce("version_id", Value(version.pk, UUIDField()))
    own_chunk = Chunk.objects.alias(of=of).filter(of=version.pk, exchange=OuterRef("pk"))
    previous_chunk = chunks.filter(index=OuterRef("chunk_index") - 1)
    exchanges = Exchange.objects.filter(pk__in=chunks.values("exchange"), forgotten_at=None)
    exchanges.update(
        is_inactive=False, chunk_index=Subquery(own_chunk.values("index")[:1]), total_chunks=version.total_chunks
    )
    exchanges.update(previous=Subquery(previous_chunk.values("exchange")[:1]))


def is_blocked(version: DocumentVersion) -> bool:
    """Return True if its embedding waits for an unavailable dependency such as the vector store."""
    pending = version_embedding_jobs(version).filter(state=Job.State.PENDING, locked_until=None)
    return pending.exclude(error="").exists()


def chunk_progress(version_ids: list[uuid.UUID]) -> dict[uuid.UUID, int]:
    """Return for each version with chunks the number of indexed ones."""
    is_indexed = Q(
        exchange__embeddings__generation=generations.active_generation(), exchange__embeddings__state=Job.State.DONE
    )
    rows = Chunk.objects.filter(version__in=version_ids).values_list("version")
    return dict(rows.annotate(done=Count("exchange__embeddings", filter=is_indexed)).order_by())


def retry_document(version: DocumentVersion) -> None:
    """Retry a failed version from its failed chunks, or from extraction if it has none."""
    with transaction.atomic():
        locked = DocumentVersion.objects.select_for_update().get(pk=version.pk)
        if locked.stage != Stage.FAILED:
            return
        if locked.total_chunks and locked.chunks.count() == locked.total_chunks:
            DocumentVersion.objects.filter(pk=locked.pk).update(
                stage=Stage.EMBEDDING, state=Job.State.DONE, error="", attempt=F("attempt") + 1
            )
            jobs.requeue(version_embedding_jobs(locked).filter(state=Job.State.FAILED))
            jobs.wake_worker_on_commit("index_pending")
        else:
            DocumentVersion.objects.filter(pk=locked.pk).update(stage=Stage.RECEIVED)
            jobs.requeue(DocumentVersion.objects.filter(pk=locked.pk))
            jobs.wake_worker_on_commit("read_documents")
