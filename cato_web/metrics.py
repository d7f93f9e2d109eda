"""Figures for Prometheus: what this process counted, and what the database says of all of them."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.cache import cache
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, GCCollector, Metric, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily

from chat import metrics
from chat.answers import runner
from chat.realtime.hub import hub
from memory import jobs
from memory.errors import VectorStoreDisabledError, VectorStoreUnavailableError
from memory.index.reconcile import drift
from memory.models import Exchange

__all__ = ["CONTENT_TYPE", "exposition"]

_DRIFT_FOR = 60  # seconds; it asks the vector store once for each space


class DatabaseCollector:
    """What is the same whichever process is asked."""

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("cato_exchanges", "Exchanges that can be found.", Exchange.objects.findable().count())
        pending = GaugeMetricFamily("cato_jobs_pending", "Work that waits, by kind.", labels=["kind"])
        failed = GaugeMetricFamily("cato_jobs_failed", "Work that failed for good, by kind.", labels=["kind"])
        lag = GaugeMetricFamily(
            "cato_jobs_oldest_due_seconds", "How long the oldest waits that is due.", labels=["kind"]
        )
        now = timezone.now()
        for queue in jobs.queue_stats():
            pending.add_metric([queue.kind], queue.pending)
            failed.add_metric([queue.kind], queue.failed)
            age = (now - queue.oldest_due_at).total_seconds() if queue.oldest_due_at else 0
            lag.add_metric([queue.kind], age)
        yield from (pending, failed, lag)
        yield from _drift()


class WebProcessCollector:
    """What this process does at this moment."""

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("cato_streams", "Answers that this process is writing.", runner.count())
        yield GaugeMetricFamily("cato_pages", "Open pages that listen to this process.", hub.count_subscribers())


def exposition() -> bytes:
    """All figures, in the text format of Prometheus."""
    return generate_latest(_registry) + generate_latest(metrics.REGISTRY)


def _drift() -> Iterator[Metric]:
    family = GaugeMetricFamily("cato_index_drift", "How far database and index are apart.", labels=["side"])
    try:
        apart = cache.get_or_set("metrics:drift", _drift_counts, _DRIFT_FOR)
    except (VectorStoreUnavailableError, VectorStoreDisabledError):
        return
    for side, count in (apart or {}).items():
        family.add_metric([side], count)
    yield family


def _drift_counts() -> dict[str, int]:
    apart = drift()
    return {"rows_without_vector": apart.rows_without_vector, "vectors_without_row": apart.vectors_without_row}


_registry = CollectorRegistry()
_registry.register(DatabaseCollector())
_registry.register(WebProcessCollector())
ProcessCollector(registry=_registry)
GCCollector(registry=_registry)
