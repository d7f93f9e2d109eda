"""The gates: how similar something must be to be recalled, per embedding model, fixed or rising."""

from __future__ import annotations

from django.conf import settings

from memory.retrieval.results import Query

# For the local model measured by benchmarks/gate.py: of twenty questions that share no content word with the fact they
# ask for 19 come through, of twenty unrelated ones 19 stay silent. The other two spread their cosines differently; their
# numbers come from what is published about them and were not measured here.
CALIBRATED = {
    "all-MiniLM-L6-v2": 0.26,
    "text-embedding-3-small": 0.30,
    "nomic-embed-text": 0.60,
}
_UNKNOWN_MODEL = 0.26


def static(model: str) -> float:
    """The similarity a result must reach with `model`: the configured number, else the calibrated one."""
    configured = settings.CATO.vector_store.similarity_threshold
    return CALIBRATED.get(model, _UNKNOWN_MODEL) if configured is None else float(configured)


def rising(query: Query) -> float:
    """A threshold rising linearly with the conversation's messages, between its two configured ends."""
    conf = settings.CATO.vector_store
    share = min(1.0, query.conversation_length / conf.dynamic_threshold_full_at)
    return float(conf.dynamic_threshold_min + share * (conf.dynamic_threshold_max - conf.dynamic_threshold_min))
