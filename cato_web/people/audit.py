"""Writes what memory announces into the audit log."""

from __future__ import annotations

import uuid
from typing import Any

from django.dispatch import receiver

from cato_web.people.models import AuditEntry
from memory import signals


@receiver(signals.forgotten)
def note_forgetting(exchange_ids: list[uuid.UUID], by: uuid.UUID, **kwargs: Any) -> None:
    AuditEntry.objects.bulk_create(
        [AuditEntry(who_id=by, action="forgot an exchange", about=str(exchange_id)) for exchange_id in exchange_ids]
    )
