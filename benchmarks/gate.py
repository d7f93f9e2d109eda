"""Which similarity lets through what was asked for and keeps silent otherwise, for the local embedding model.

    python -m benchmarks.gate

Of the twenty questions of tests/facts.py: for how many the right fact comes through (among the five nearest); of the
twenty unrelated messages: for how many nothing does. Facts are embedded as exchanges are, and once more as notes.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import django
import numpy as np

from benchmarks.bench import workbench
from benchmarks.figures import table
from tests.facts import FACTS, UNRELATED

if TYPE_CHECKING:
    from memory.embeddings.protocol import Vectors

THRESHOLDS = [round(0.10 + 0.02 * step, 2) for step in range(18)]
PROMISED = 19  # of twenty each, what memory/retrieval/thresholds.py says of it
RESULTS = 5  # vector_store.context_results


def main() -> int:
    """Print the table; the calibrated threshold's row is marked. Exit code 1 where it does not keep its promise."""
    with workbench():
        os.environ["DJANGO_SETTINGS_MODULE"] = "cato_web.settings"
        django.setup()
        from memory.embeddings.local import SHIPPED_MODEL, LocalEmbedder
        from memory.retrieval.thresholds import CALIBRATED
        from memory.services.indexing import text_of

        calibrated = CALIBRATED[SHIPPED_MODEL]
        embedder = LocalEmbedder(SHIPPED_MODEL)
        questions = embedder.embed_documents([question for _, question in FACTS])
        unrelated = embedder.embed_documents(UNRELATED)
        kinds = [embedder.embed_documents([text_of(fact, answer) for fact, _ in FACTS]) for answer in ("Noted.", "")]
    rows = []
    promise_is_kept = False
    for threshold in sorted({*THRESHOLDS, calibrated}):
        counts = [
            n for facts in kinds for n in (kept(questions @ facts.T, threshold), silent(unrelated @ facts.T, threshold))
        ]
        if threshold == calibrated:
            promise_is_kept = min(counts[:2]) >= PROMISED
        rows.append((f"{threshold:.2f}{' (shipped)' if threshold == calibrated else ''}", *counts))
    head = ("threshold", "exchanges: kept of 20", "silent of 20", "notes: kept of 20", "silent of 20")
    table(head, rows)
    return int(not promise_is_kept)


def kept(similarities: Vectors, threshold: float) -> int:
    """For how many questions (rows) their own fact is over the threshold and among the nearest."""
    own = np.diag(similarities)
    better = (similarities > own[:, None]).sum(axis=1)
    return int(((own >= threshold) & (better < RESULTS)).sum())


def silent(similarities: Vectors, threshold: float) -> int:
    """For how many messages (rows) no fact is over the threshold."""
    return int((similarities.max(axis=1) < threshold).sum())


if __name__ == "__main__":
    sys.exit(main())
