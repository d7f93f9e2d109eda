"""Delete documents: hidden at once, then chunks and originals in batches that survive crashes."""

from __future__ import annotations

import logging
import uuid
from collections import defaultdict
from collections.abc import Iterable

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from memory import jobs, signals
from memory.documents.publishing import hide_chunks
from memory.events import record_events
from memory.exchanges.forgetting import forget
from memory.knowledge.sources import lock_with_statements
from memory.models import Chunk, Document, DocumentVersion, Event, HiddenPassage
from memory.models.documents import FOLDER
from memory.utils import stored_files

log = logging.getLogger(__name__)

Stage = DocumentVersion.Stage
_BATCH_SIZE = 200
# Versions that need no chunks any more, and those that need them only while live.
_DISCARDED = (Stage.CANCELLED, Stage.REMOVED)
_WITHOUT_CHUNKS = (*_DISCARDED, Stage.REPLACED)


def forget_documents(document_ids: Iterable[uuid.UUID], *, by: uuid.UUID) -> int:
    """Delete documents with all versions, unreadable from the commit on; return their number.

    The caller has checked that `by` may do this. A worker deletes chunks, vectors and originals.
    """
    deleted: list[Document] = []
    with transaction.atomic():
        rows = Document.objects.select_for_update().filter(pk__in=list(document_ids), forgotten_at=None)
        for document in rows:
            # First, as a worker locks its version before the chunks.
            jobs.cancel(document.versions.all())
            hide_chunks(Chunk.objects.filter(version__document=document))
            document.versions.update(stage=Stage.REMOVED, title="", uploaded_by=by)
            HiddenPassage.objects.filter(version__document=document).delete()
            document.name, document.source_path, document.metadata, document.live_version = "", "", {}, None
            document.forgotten_at = timezone.now()
            document.save()
            deleted.append(document)
        if deleted:
            record_events(Event.Kind.DOCUMENT_FORGOTTEN, deleted)
            jobs.wake_worker_on_commit("cleanup_documents")
            ids = [document.pk for document in deleted]
            transaction.on_commit(lambda: signals.documents_deleted.send(sender=None, document_ids=ids, by=by))
    return len(deleted)


def forget_version(version: DocumentVersion, *, by: uuid.UUID) -> None:
    """Delete one version.

    If it was live, or none was, the newest other version that could be read is extracted again. If there is no other
    version, the document is deleted.
    """
    with transaction.atomic():
        document = Document.objects.select_for_update().get(pk=version.document_id)
        if document.forgotten_at is not None:
            return
        others = document.versions.present().exclude(pk=version.pk)
        if not others.exists():
            forget_documents([document.pk], by=by)
            return
        jobs.cancel(document.versions.filter(pk=version.pk))
        document.versions.filter(pk=version.pk).update(stage=Stage.REMOVED, uploaded_by=by)
        version.hidden_passages.all().delete()
        # None: it was the first of an imported document to be read.
        if document.live_version_id in (version.pk, None):
            hide_chunks(Chunk.objects.filter(version=version))
            Document.objects.filter(pk=document.pk).update(live_version=None)
            _extract_again(others)
        record_events(Event.Kind.DOCUMENT_CHANGED, [document])
        jobs.wake_worker_on_commit("cleanup_documents")


def cancel_document(version: DocumentVersion, *, by: uuid.UUID) -> bool:
    """Cancel a version that is in progress or failed; return False for another one, which stays."""
    if version.stage not in (*DocumentVersion.UNDER_WAY, Stage.FAILED):
        return False
    forget_version(version, by=by)
    return True


def delete_old_versions(document: Document, count: int, *, by: uuid.UUID) -> int:
    """Delete all but the last `count` versions and the live one; return the number of deleted ones."""
    versions = document.versions.present().order_by("-number")
    # The newest ones may have failed, or still be in progress.
    live_id = Document.objects.values_list("live_version", flat=True).get(pk=document.pk)
    old = [version for version in versions[max(count, 1) :] if version.pk != live_id]
    for version in old:
        forget_version(version, by=by)
    return len(old)


def cleanup_documents() -> int:
    """Forget unused chunks and delete unused originals; return the number of removed versions.

    The call can be repeated. A version whose original cannot be deleted is left for the next call.
    """
    while _forget_batch():
        pass
    HiddenPassage.objects.filter(version__stage__in=_WITHOUT_CHUNKS).delete()
    removed = 0
    for version in _removable_versions():
        try:
            if version.original.name:
                default_storage.delete(version.original.name)
        except OSError as error:
            log.warning("the file %s could not be deleted: %s", version.original.name, error.strerror or error)
            continue
        # The chunk rows of a forgotten document stay without text, because its receipt counts them.
        version.chunks.update(location="")
        DocumentVersion.objects.filter(pk=version.pk).update(
            original="", sha256="", title="", kind="", removed_at=timezone.now()
        )
        removed += 1
    return removed


def delete_orphaned_originals(*, dry_run: bool = False) -> int:
    """Delete stored files to which no version refers; return their number."""
    return stored_files.delete_orphaned_files(DocumentVersion, "original", folder=FOLDER, dry_run=dry_run)


def _forget_batch() -> bool:
    """Forget a batch of chunks that no version needs; return False if none are left."""
    versions = DocumentVersion.objects.filter(stage__in=_WITHOUT_CHUNKS, removed_at=None)
    chunks = Chunk.objects.filter(version__in=versions)
    needed = Chunk.objects.filter(exchange=OuterRef("exchange")).exclude(version__stage__in=_WITHOUT_CHUNKS)
    unneeded = chunks.filter(~Exists(needed), exchange__forgotten_at=None)
    exchange_ids = list(unneeded.values_list("exchange_id", flat=True)[:_BATCH_SIZE])
    if not exchange_ids:
        chunks.filter(version__document__forgotten_at=None).delete()
        return False
    with transaction.atomic():
        # A new version may have reused some of them meanwhile; it locks those.
        lock_with_statements(exchange_ids)
        rows = unneeded.filter(exchange__in=exchange_ids).values_list("version__uploaded_by_id", "exchange_id")
        by_person: dict[uuid.UUID, set[uuid.UUID]] = defaultdict(set)
        for person_id, exchange_id in rows:
            by_person[person_id].add(exchange_id)
        for person_id, ids in by_person.items():
            forget(ids, by=person_id, as_part_of_a_document=True)
    return True


def _removable_versions() -> QuerySet[DocumentVersion]:
    """Return the versions without chunks whose rows and files can be removed."""
    newer = DocumentVersion.objects.filter(
        document=OuterRef("document"), stage=Stage.REPLACED, removed_at=None, number__gt=OuterRef("number")
    )
    count = newer.order_by().values("document").annotate(n=Count("pk")).values("n")
    beyond_limit = Q(stage=Stage.REPLACED, newer__gte=settings.CATO.documents.keep_versions - 1)
    stored = DocumentVersion.objects.filter(removed_at=None)
    live_chunks = Chunk.objects.filter(version=OuterRef("pk"), exchange__forgotten_at=None)
    unused = stored.annotate(newer=Coalesce(Subquery(count), 0)).filter(Q(stage__in=_DISCARDED) | beyond_limit)
    return unused.filter(~Exists(live_chunks))


def _extract_again(versions: QuerySet[DocumentVersion]) -> None:
    """Extract the newest of these versions again, a failed one only without others, unless one is in progress."""
    if versions.filter(stage__in=DocumentVersion.UNDER_WAY).exists():
        return
    stored = versions.exclude(original="").order_by("-number")
    newest = stored.exclude(stage=Stage.FAILED).first() or stored.first()
    if newest is not None:
        DocumentVersion.objects.filter(pk=newest.pk).update(stage=Stage.RECEIVED)
        jobs.requeue(DocumentVersion.objects.filter(pk=newest.pk))
        jobs.wake_worker_on_commit("read_documents")
