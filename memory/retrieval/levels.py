"""What each embedding model calls relevant, as it was measured or calibrated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memory.models import Calibration


@dataclass(frozen=True, slots=True)
class Level:
    """What one embedding model calls relevant.

    `evidence` is what cosine plus margin must reach, `similarity` what a single cosine must for the strategies that
    ask each result, `unrelated` the cosine of two texts that have nothing to do with each other. `foreign` is what the
    evidence of a question in another language than English has too much: to a model that learnt English alone, texts of
    another language are alike for being in it.
    """

    evidence: float
    similarity: float
    unrelated: float
    foreign: float = 0.0


# The local model's were measured (docs/retrieval.md); the others' come from what is published about how their cosines
# spread, and `calibrate` replaces them.
LEVELS = {
    "all-MiniLM-L6-v2": Level(evidence=0.5, similarity=0.26, unrelated=0.03, foreign=0.28),
    "text-embedding-3-small": Level(evidence=0.50, similarity=0.30, unrelated=0.15),
    "nomic-embed-text": Level(evidence=0.75, similarity=0.60, unrelated=0.45),
}
# Of a model in a folder nothing is known, not even that it knows English alone.
_UNKNOWN = replace(LEVELS["all-MiniLM-L6-v2"], foreign=0.0)


def level_of(provider: str, model: str) -> Level:
    """The level of this model: fitted on this store where `calibrate` ran, else the shipped one."""
    shipped = LEVELS.get(model, _UNKNOWN)
    fitted = Calibration.objects.filter(provider=provider, model=model).values_list("threshold", flat=True).first()
    return shipped if fitted is None else replace(shipped, evidence=fitted)
