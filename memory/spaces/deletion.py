"""Delete the contents of a space when a person leaves and takes nothing along."""

from __future__ import annotations

import uuid
from datetime import datetime

from memory.documents.deletion import forget_documents
from memory.exchanges.forgetting import forget
from memory.exchanges.receipts import ErasureReceipt, receipt_for
from memory.models import (
    Chunk,
    Document,
    DocumentVersion,
    Event,
    Exchange,
    Feedback,
    Membership,
    MembershipChange,
    Supersession,
)

_BATCH_SIZE = 200


def delete_space_contents(space_id: uuid.UUID, *, by: uuid.UUID) -> int:
    """Forget one batch of the space's contents; return its size, or 0 if nothing is left to read.

    Whole documents come first, then exchanges of all sources. Each batch is a transaction, so repeated calls resume
    after an interruption; the last one deletes the events of the space. A worker erases vectors, cached embeddings, texts
    and originals later.
    """
    documents = Document.objects.filter(space_id=space_id, forgotten_at=None).values_list("pk", flat=True)[:_BATCH_SIZE]
    if deleted := forget_documents(documents, by=by):
        return deleted
    remaining = Exchange.objects.filter(space_id=space_id, forgotten_at=None)
    ids = set(remaining.values_list("pk", flat=True)[:_BATCH_SIZE])
    if not ids:
        Event.objects.filter(space_id=space_id).delete()
    chunk_ids = set(Chunk.objects.filter(exchange_id__in=ids).values_list("exchange_id", flat=True))
    return len(forget(chunk_ids, by=by, as_part_of_a_document=True)) + len(forget(ids - chunk_ids, by=by))


def space_receipt(space_id: uuid.UUID, *, since: datetime) -> tuple[ErasureReceipt, int]:
    """Return the receipt of everything forgotten in this space since then, and the number of originals not yet deleted."""
    exchanges = Exchange.objects.filter(space_id=space_id, forgotten_at__gte=since)
    originals = DocumentVersion.objects.filter(document__space_id=space_id, removed_at=None).exclude(original="")
    return receipt_for(exchanges.values_list("pk", flat=True).iterator()), originals.count()


def remove_from_all_groups(person_id: uuid.UUID) -> None:
    """Remove this person from all groups, and delete their feedback and what they decided about recalled messages."""
    memberships = Membership.objects.filter(person_id=person_id)
    MembershipChange.objects.bulk_create(
        MembershipChange(space_id=space_id, person_id=person_id, by_id=person_id, kind=MembershipChange.Kind.REMOVED)
        for space_id in memberships.values_list("space_id", flat=True)
    )
    memberships.delete()
    Feedback.objects.filter(person_id=person_id).delete()
    Supersession.objects.filter(person_id=person_id).delete()
