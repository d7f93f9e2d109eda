"""Receivers of memory's signals: no archive outlives what is forgotten."""

from __future__ import annotations

from typing import Any

from django.dispatch import receiver

from cato_web.accounts.models import ExportJob
from memory.api import signals


@receiver(signals.exchanges_forgotten)
@receiver(signals.documents_deleted)
def on_forgotten(**kwargs: Any) -> None:
    """Have the next sweep check all archives, also those that are being written; most often there is none."""
    ExportJob.objects.update(is_check_due=True)
