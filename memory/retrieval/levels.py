"""Relevance levels of the embedding models, measured or calibrated."""

from __future__ import annotations

from dataclasses import dataclass, replace

from django.conf import settings

from memory.models import Calibration

# The comparable similarity of a relevant text. Fusion and gate are tuned for it.
_RELEVANT = 0.45


@dataclass(frozen=True, slots=True)
class Level:
    """The cosines of a relevant text, of an unrelated one, of two duplicates and of two messages on one subject.

    They are those of one embedding model. Models use different parts of the range from -1 to 1:
    multilingual-e5-small gives unrelated texts .74.
    """

    similarity: float
    unrelated: float
    duplicate: float = 0.95
    same_subject: float = 0.6

    def comparable(self, cosine: float) -> float:
        """Return the cosine on a scale that all models share: 0 for unrelated and .45 for relevant texts."""
        return _RELEVANT * (cosine - self.unrelated) / (self.similarity - self.unrelated)


# The values of multilingual-e5-small are measured (docs/retrieval.md). The others are derived from published cosine
# distributions; `calibrate` replaces their `similarity`.
LEVELS = {
    "multilingual-e5-small": Level(similarity=0.8, unrelated=0.74, duplicate=0.97, same_subject=0.87),
    "text-embedding-3-small": Level(similarity=0.30, unrelated=0.15),
    "nomic-embed-text": Level(similarity=0.60, unrelated=0.45, same_subject=0.75),
}
# Nothing is known about a model in a folder. These are the values of all-MiniLM-L6-v2, which are common.
_UNKNOWN = Level(similarity=0.26, unrelated=0.03)


def configured_level(model: str) -> Level:
    """Return the level of this model without calibration; the setting `subject_similarity` replaces `same_subject`."""
    level = LEVELS.get(model, _UNKNOWN)
    subject = settings.CATO.vector_store.subject_similarity
    return level if subject is None else replace(level, same_subject=float(subject))


def level_of(provider: str, model: str) -> Level:
    """Return the level of this model, with the fitted `similarity` if `calibrate` ran on this store."""
    level = configured_level(model)
    fitted = Calibration.objects.filter(provider=provider, model=model).values_list("threshold", flat=True).first()
    return level if fitted is None else replace(level, similarity=fitted)
