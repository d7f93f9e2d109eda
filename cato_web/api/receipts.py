"""Until when what was forgotten is gone from the disk."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.utils import timezone


def gone_by() -> datetime:
    """The latest moment for what is forgotten now."""
    return timezone.now() + timedelta(hours=settings.CATO.vector_store.erase_within_hours)
