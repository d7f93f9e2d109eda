"""Taking documents out: at once out of every read, then piece by piece, and the originals, whatever crashes between."""

from __future__ import annotations

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
from memory.exchanges.forgetting import ErasureReceipt, forget, receipt_for
from memory.models import Chunk, Document, DocumentVersion, Exchange, HiddenPassage
from memory.models.documents import FOLDER
from memory.utils import stored_files

Stage = DocumentVersion.Stage
_TOGETHER = 200
# Versions of which nothing is wanted any more, and those that hold pieces only as long as they serve.
_UNWANTED = (Stage.CANCELLED, Stage.REMOVED)
_WITHOUT_PIECES = (*_UNWANTED, Stage.REPLACED)


def forget_documents(document_ids: Iterable[uuid.UUID], *, by: uuid.UUID) -> int:
    """Delete documents with all their versions; unreadable from the commit on. Returns how many there were.

    The caller has asked whether `by` may. Pieces, vectors and originals follow in a worker.
    """
    gone = []
    with transaction.atomic():
        rows = Document.objects.select_for_update().filter(pk__in=list(document_ids), forgotten_at=None)
        for document in rows:
            _hide(Chunk.objects.filter(version__document=document))
            jobs.cancel(document.versions.filter(stage__in=DocumentVersion.UNDER_WAY))
            document.versions.update(stage=Stage.REMOVED, title="", uploaded_by=by)
            HiddenPassage.objects.filter(version__document=document).delete()
            document.name, document.source_path, document.metadata, document.live_version = "", "", {}, None
            document.forgotten_at = timezone.now()
            document.save()
            gone.append(document.pk)
        if gone:
            jobs.wake_worker_on_commit("cleanup_documents")
            transaction.on_commit(lambda: signals.documents_forgotten.send(sender=None, document_ids=gone, by=by))
    return len(gone)


def forget_version(version: DocumentVersion, *, by: uuid.UUID) -> None:
    """Delete all of one version. Was it the one that serves, the newest of which the original is kept is read again;
    where there is none, the document goes."""
    with transaction.atomic():
        document = Document.objects.select_for_update().get(pk=version.document_id)
        if document.forgotten_at is not None:
            return
        others = document.versions.exclude(pk=version.pk).filter(removed_at=None).exclude(stage__in=_UNWANTED)
        if not others.exists():
            forget_documents([document.pk], by=by)
            return
        jobs.cancel(document.versions.filter(pk=version.pk))
        document.versions.filter(pk=version.pk).update(stage=Stage.REMOVED, uploaded_by=by)
        version.hidden_passages.all().delete()
        if document.live_version_id == version.pk:
            _hide(Chunk.objects.filter(version=version))
            Document.objects.filter(pk=document.pk).update(live_version=None)
            _read_again(others)
        jobs.wake_worker_on_commit("cleanup_documents")


def cancel_document(version: DocumentVersion, *, by: uuid.UUID) -> None:
    """Give up a version that does not serve yet; what served before goes on to."""
    if version.stage in (*DocumentVersion.UNDER_WAY, Stage.FAILED):
        forget_version(version, by=by)


def delete_old_versions(document: Document, count: int, *, by: uuid.UUID) -> int:
    """Delete all but the last `count` versions; returns how many went."""
    kept = document.versions.filter(removed_at=None).exclude(stage__in=_UNWANTED).order_by("-number")
    old = list(kept[max(count, 1) :])
    for version in old:
        forget_version(version, by=by)
    return len(old)


def cleanup_documents() -> int:
    """Forget the pieces and delete the originals that no version needs any more; returns how many versions are gone.

    Repeatable: each step takes away what is there.
    """
    while _forget_some():
        pass
    HiddenPassage.objects.filter(version__stage__in=_WITHOUT_PIECES).delete()
    gone = 0
    for version in _without_use():
        if version.original.name:
            default_storage.delete(version.original.name)
        # Where the document is forgotten its pieces' rows stay, without words: the receipt is counted from them.
        version.chunks.update(location="")
        DocumentVersion.objects.filter(pk=version.pk).update(
            original="", sha256="", title="", kind="", removed_at=timezone.now()
        )
        gone += 1
    return gone


def delete_orphaned_originals(*, dry_run: bool = False) -> int:
    """Remove stored files that no version names; returns how many."""
    return stored_files.delete_orphaned_files(DocumentVersion, "original", folder=FOLDER, dry_run=dry_run)


def document_receipt(document: Document) -> ErasureReceipt:
    """What became of a forgotten document's pieces."""
    return receipt_for(Chunk.objects.filter(version__document=document).values_list("exchange_id", flat=True))


def _forget_some() -> bool:
    """Forget a slice of the pieces that only versions without pieces have; False where none are left."""
    empty = DocumentVersion.objects.filter(stage__in=_WITHOUT_PIECES, removed_at=None)
    chunks = Chunk.objects.filter(version__in=empty)
    wanted = Chunk.objects.filter(exchange=OuterRef("exchange")).exclude(version__stage__in=_WITHOUT_PIECES)
    lone = chunks.filter(~Exists(wanted), exchange__forgotten_at=None)
    seen = list(lone.values_list("exchange_id", flat=True)[:_TOGETHER])
    if not seen:
        chunks.filter(version__document__forgotten_at=None).delete()
        return False
    with transaction.atomic():
        # A new version may have taken one of them up meanwhile; it locks what it takes.
        list(Exchange.objects.select_for_update().filter(pk__in=seen).values_list("pk"))
        still = lone.filter(exchange__in=seen).values_list("version__uploaded_by_id", "exchange_id")
        by_person: dict[uuid.UUID, set[uuid.UUID]] = defaultdict(set)
        for person_id, exchange_id in still:
            by_person[person_id].add(exchange_id)
        for person_id, ids in by_person.items():
            forget(ids, by=person_id, as_part_of_a_document=True)
    return True


def _without_use() -> QuerySet[DocumentVersion]:
    """Versions that are not removed yet, of which nothing is to be kept and no piece is left."""
    newer = DocumentVersion.objects.filter(
        document=OuterRef("document"), stage=Stage.REPLACED, removed_at=None, number__gt=OuterRef("number")
    )
    count = newer.order_by().values("document").annotate(n=Count("pk")).values("n")
    beyond = Q(stage=Stage.REPLACED, newer__gte=settings.CATO.documents.keep_versions - 1)
    here = DocumentVersion.objects.filter(removed_at=None)
    alive = Chunk.objects.filter(version=OuterRef("pk"), exchange__forgotten_at=None)
    unused = here.annotate(newer=Coalesce(Subquery(count), 0)).filter(Q(stage__in=_UNWANTED) | beyond)
    return unused.filter(~Exists(alive))


def _hide(chunks: QuerySet[Chunk]) -> None:
    Exchange.objects.filter(pk__in=chunks.values("exchange")).update(is_inactive=True)


def _read_again(versions: QuerySet[DocumentVersion]) -> None:
    """Where nothing else is on its way, bring the newest of these back into memory from its original."""
    if versions.filter(stage__in=DocumentVersion.UNDER_WAY).exists():
        return
    newest = versions.exclude(original="").order_by("-number").first()
    if newest is not None:
        DocumentVersion.objects.filter(pk=newest.pk).update(stage=Stage.RECEIVED)
        jobs.requeue(DocumentVersion.objects.filter(pk=newest.pk))
        jobs.wake_worker_on_commit("read_documents")
