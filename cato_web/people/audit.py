"""Writes what memory announces into the audit log."""

from __future__ import annotations

import uuid
from typing import Any

from django.dispatch import receiver

from cato_web.people.models import AuditEntry
from memory import signals


@receiver(signals.forgotten)
def note_forgetting(exchange_ids: list[uuid.UUID], by: uuid.UUID, as_part_of_a_document: bool, **kwargs: Any) -> None:
    if not as_part_of_a_document:
        _note("forgot an exchange", exchange_ids, by)


@receiver(signals.documents_forgotten)
def note_deleted_documents(document_ids: list[uuid.UUID], by: uuid.UUID, **kwargs: Any) -> None:
    _note("deleted a document", document_ids, by)


def _note(action: str, ids: list[uuid.UUID], by: uuid.UUID) -> None:
    AuditEntry.objects.bulk_create([AuditEntry(who_id=by, action=action, about=str(id)) for id in ids])
