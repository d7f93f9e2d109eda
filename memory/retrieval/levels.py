"""Relevance levels of the embedding models, measured or calibrated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memory.models import Calibration


@dataclass(frozen=True, slots=True)
class Level:
    """The cosines that count as relevant and unrelated for one embedding model.

    `evidence` is the minimum of the comparable cosine plus its margin. `similarity` is the minimum cosine for strategies
    that gate each hit. `unrelated` is the cosine of two unrelated texts. `foreign` is subtracted from the evidence of
    queries that are not in English: a model trained on English only rates all texts of another language as similar.
    `offset` and `factor` map the model's cosines to the range of all-MiniLM-L6-v2, for which fusion and gate are tuned.
    """

    evidence: float
    similarity: float
    unrelated: float
    foreign: float = 0.0
    offset: float = 0.0
    factor: float = 1.0

    def comparable(self, cosine: float) -> float:
        """Return the cosine as a value that is comparable between models."""
        return (cosine - self.offset) * self.factor


# The values of all-MiniLM-L6-v2 are measured (docs/retrieval.md). The others are derived from published cosine
# distributions; `calibrate` replaces their `evidence`.
LEVELS = {
    "all-MiniLM-L6-v2": Level(evidence=0.5, similarity=0.26, unrelated=0.03, foreign=0.28),
    "multilingual-e5-small": Level(evidence=0.5, similarity=0.8, unrelated=0.74, offset=0.74, factor=5.0),
    "text-embedding-3-small": Level(evidence=0.50, similarity=0.30, unrelated=0.15),
    "nomic-embed-text": Level(evidence=0.75, similarity=0.60, unrelated=0.45),
}
# Nothing is known about a model in a folder, not even whether it is limited to English.
_UNKNOWN = replace(LEVELS["all-MiniLM-L6-v2"], foreign=0.0)


def shipped_level(model: str) -> Level:
    """Return the level of this model without calibration."""
    return LEVELS.get(model, _UNKNOWN)


def level_of(provider: str, model: str) -> Level:
    """Return the level of this model, with the fitted `evidence` if `calibrate` ran on this store."""
    shipped = shipped_level(model)
    fitted = Calibration.objects.filter(provider=provider, model=model).values_list("threshold", flat=True).first()
    return shipped if fitted is None else replace(shipped, evidence=fitted)
