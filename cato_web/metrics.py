"""Prometheus metrics of the web processes, and gauges from the database.

Several web processes of one `serve` share an address, so whichever answers returns the sums of all: the library keeps the
values of each in a file, in the folder that PROMETHEUS_MULTIPROC_DIR names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from django.core.cache import cache
from django.utils import timezone
from prometheus_client import CONTENT_TYPE_LATEST as CONTENT_TYPE
from prometheus_client import CollectorRegistry, GCCollector, Metric, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from chat import metrics
from chat.usage.counting import month_start
from chat.usage.reports import usage_by
from memory.api import Exchange, VectorStoreDisabledError, VectorStoreUnavailableError, jobs, measure_drift

__all__ = ["CONTENT_TYPE", "exposition"]

# Counts of all rows are cached for ten minutes: the drift, which also queries each collection of the index, and the exchanges
# if there are so many that counting them is slow.
_CACHED_FOR, _QUICK = 600, 0.1  # seconds


class DatabaseCollector:
    """Gauges that are the same in every process."""

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges."""
        yield GaugeMetricFamily("cato_exchanges", "Exchanges that can be found.", _count_exchanges())
        pending = GaugeMetricFamily("cato_jobs_pending", "Pending jobs, by kind.", labels=["kind"])
        failed = GaugeMetricFamily("cato_jobs_failed", "Permanently failed jobs, by kind.", labels=["kind"])
        lag = GaugeMetricFamily("cato_jobs_oldest_due_seconds", "Age of the oldest due job.", labels=["kind"])
        now = timezone.now()
        for queue in jobs.queue_stats():
            kind = queue.kind.removesuffix("job")
            pending.add_metric([kind], queue.pending)
            failed.add_metric([kind], queue.failed)
            age = (now - queue.oldest_due_at).total_seconds() if queue.oldest_due_at else 0
            lag.add_metric([kind], age)
        yield from (pending, failed, lag)
        yield from _usage()
        yield from _drift()


def exposition() -> bytes:
    """Return all metrics in the text format of Prometheus."""
    folder = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    return generate_latest(_registry) + generate_latest(_sums(folder) if folder else metrics.REGISTRY)


def _sums(folder: str) -> CollectorRegistry:
    """Return the sums of all processes with a file in the folder, without the streams and pages of those that ended."""
    for file in Path(folder).glob("gauge_live*.db"):
        process_id = int(file.stem.rpartition("_")[2])
        try:
            os.kill(process_id, 0)
        except (ProcessLookupError, PermissionError):  # it ended, and somebody else's process may have its id now
            with suppress(FileNotFoundError):  # another request removes the same file
                mark_process_dead(process_id, folder)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, folder)
    return registry


def _count_exchanges() -> int:
    count: int | None = cache.get("metrics:exchanges")
    if count is None:
        started = time.monotonic()
        count = Exchange.objects.findable().count()
        if time.monotonic() - started > _QUICK:
            cache.set("metrics:exchanges", count, _CACHED_FOR)
    return count


def _usage() -> Iterator[Metric]:
    """Yield the usage of this month, which begins at 0 with each month."""
    tokens = GaugeMetricFamily(
        "cato_usage_tokens", "Model usage in this month, in tokens by purpose and kind.", labels=["purpose", "kind"]
    )
    cost = GaugeMetricFamily("cato_usage_cost", "Known cost of this month, by purpose.", labels=["purpose"])
    for row in usage_by("purpose", month_start()):
        tokens.add_metric([row.key, "prompt"], row.prompt_tokens)
        tokens.add_metric([row.key, "cached"], row.cached_tokens)
        tokens.add_metric([row.key, "completion"], row.completion_tokens)
        cost.add_metric([row.key], float(row.cost))
    yield from (tokens, cost)


def _drift() -> Iterator[Metric]:
    family = GaugeMetricFamily("cato_index_drift", "Differences between database and index.", labels=["side"])
    try:
        counts = cache.get_or_set("metrics:drift", _drift_counts, _CACHED_FOR)
    except (VectorStoreUnavailableError, VectorStoreDisabledError):
        return
    for side, count in (counts or {}).items():
        family.add_metric([side], count)
    yield family


def _drift_counts() -> dict[str, int]:
    drift = measure_drift()
    return {"rows_without_vector": drift.rows_without_vector, "vectors_without_row": drift.vectors_without_row}


_registry = CollectorRegistry()
_registry.register(DatabaseCollector())
ProcessCollector(registry=_registry)
GCCollector(registry=_registry)
