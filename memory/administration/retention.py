"""Retention rules by source: save, preview and daily application."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Max, Q, QuerySet
from django.utils import timezone

from memory import signals
from memory.models import Document, Exchange, Operation, RetentionRule

_DAILY = timedelta(days=1)


def get_rules() -> dict[str, int]:
    """Return the number of days per source; a source without a rule is kept forever."""
    return dict(RetentionRule.objects.values_list("source", "days"))


@transaction.atomic
def save_rules(days: Mapping[str, int], *, by: uuid.UUID) -> None:
    """Replace all retention rules with these."""
    RetentionRule.objects.exclude(source__in=days).delete()
    for source, count in days.items():
        RetentionRule.objects.update_or_create(source=source, defaults={"days": count, "set_by_id": by})
    transaction.on_commit(lambda: signals.retention_changed.send(sender=None, by=by, days=dict(days)))


def preview(days: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return by source how many exchanges and how many whole documents these rules would remove now."""
    now = timezone.now()
    exchanges, documents = exchanges_too_old(days, at=now), documents_too_old(days, at=now)
    return {source: (old.count(), files.count()) for source, old, files in zip(days, exchanges, documents, strict=True)}


def exchanges_too_old(days: Mapping[str, int], *, at: datetime) -> Iterator[QuerySet[Exchange]]:
    """Yield per source the exchanges older than its rule allows, without chunks of documents."""
    for source, count in days.items():
        old = Exchange.objects.filter(forgotten_at=None, source=source, timestamp__lt=at - timedelta(days=count))
        yield old.filter(chunks=None).order_by("timestamp", "id")


def documents_too_old(days: Mapping[str, int], *, at: datetime) -> Iterator[QuerySet[Document]]:
    """Yield per source the documents whose newest version is older than its rule allows."""
    for source, count in days.items():
        documents = Document.objects.filter(source=source, forgotten_at=None)
        dated = documents.annotate(newest=Max("versions__created_at", filter=Q(versions__removed_at=None)))
        yield dated.filter(newest__lt=at - timedelta(days=count)).order_by("created_at", "id")


def due_rule_author() -> uuid.UUID | None:
    """Return the person who set the newest rule, if a retention run is due; else None.

    A run is due if none was created for a day and the rules would remove something.
    """
    newest = RetentionRule.objects.order_by("-set_at").first()
    if newest is None:
        return None
    since = timezone.now() - _DAILY
    if Operation.objects.filter(kind=Operation.Kind.RETENTION, created_at__gt=since).exists():
        return None
    return newest.set_by_id if any(map(any, preview(get_rules()).values())) else None
