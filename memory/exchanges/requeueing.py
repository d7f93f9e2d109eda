"""Queue exchanges for embedding whose text or context has changed."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db.models import F

from memory import jobs
from memory.embeddings import cache
from memory.index.parts import embedding_hash
from memory.models import EmbeddingJob, Exchange


def requeue_changed(exchange_ids: Iterable[uuid.UUID], *, force: bool = False) -> None:
    """Queue the exchanges whose text or context has changed since they were embedded, under a new version number.

    `force`: queue all of them.
    """
    rows = Exchange.objects.select_related("previous").filter(pk__in=list(exchange_ids), forgotten_at=None)
    changed, outdated = [], []
    for exchange in rows:
        digest = embedding_hash(exchange)
        if force or digest != exchange.content_hash:
            Exchange.objects.filter(pk=exchange.pk).update(content_hash=digest, version=F("version") + 1)
            changed.append(exchange.pk)
            outdated.append(exchange.content_hash)
    if changed:
        cache.delete_unreferenced(outdated)
        jobs.requeue(EmbeddingJob.objects.filter(exchange_id__in=changed))
        jobs.wake_worker_on_commit("index_pending")
