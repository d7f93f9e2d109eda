"""Prometheus metrics of the answers and pages of a web process."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()

RECALL_SECONDS = Histogram(
    "cato_recall_seconds",
    "How long recall kept an answer waiting.",
    buckets=(0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1, 2, 5),
    registry=REGISTRY,
)
RECALLS = Counter(
    "cato_recalls",
    "Recalls for answers: hit, empty (nothing relevant), words (the index was away), slow (given up), failed.",
    ["outcome"],
    registry=REGISTRY,
)
FIRST_TOKEN_SECONDS = Histogram(
    "cato_first_token_seconds",
    "From the end of recall to the first that the model says.",
    buckets=(0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64),
    registry=REGISTRY,
)
USAGE_LIMITS = Counter(
    "cato_usage_limits",
    "Messages above a monthly limit of usage: soft (posted, with a notice), hard (refused).",
    ["kind"],
    registry=REGISTRY,
)
ANSWERS = Counter("cato_answers", "Answers that ended, by how they did.", ["state"], registry=REGISTRY)
STREAMS = Gauge("cato_streams", "Answers that are being generated.", multiprocess_mode="livesum", registry=REGISTRY)
PAGES = Gauge("cato_pages", "Open pages.", multiprocess_mode="livesum", registry=REGISTRY)


def observe_recall(seconds: float, *, found: bool, note: str) -> None:
    """Record a recall; `note` is the reason of an incomplete one, or ""."""
    RECALL_SECONDS.observe(seconds)
    RECALLS.labels(note or ("hit" if found else "empty")).inc()
