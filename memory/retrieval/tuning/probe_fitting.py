"""Fit the probes of an embedding model on the labelled sentences in `memory/retrieval/traits/`."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from memory.embeddings.base import Embedder, Vectors
from memory.errors import EmbeddingError
from memory.index import generations
from memory.models import Probe
from memory.retrieval.probes import FOLDER, TRAITS, Probes, Weights, forget_probes, is_shipped

log = logging.getLogger(__name__)

# Strength of the L2 penalty for each sentence. From .05 to .6 the accuracy on held-out sentences differs little; a
# stronger penalty keeps more questions in languages without examples.
_PENALTY = 0.3
# A trait of so few messages that it needs many examples without it: the sentences of all other traits count as such.
# With so many examples, a weaker penalty separates them better.
_RARE_TRAIT, _RARE_PENALTY = "standing_instruction", 0.02
_MAX_STEPS = 50
# Seconds until a process tries again to fit probes with a model that failed.
_RETRY_SECONDS = 300.0
_WEIGHT_BYTES = 4
_next_attempts: dict[tuple[str, str], float] = {}


@dataclass(frozen=True, slots=True)
class Examples:
    """Labelled sentences of one trait with their languages; `labels` are 1 for sentences that have it, else 0."""

    texts: tuple[str, ...]
    languages: tuple[str, ...]
    labels: tuple[int, ...]


def load_examples(trait: str, folder: Path = FOLDER) -> Examples:
    """Return the labelled sentences of a trait in all languages.

    All sentences of the traits in `negative_from` are further ones that do not have it.
    """
    content = yaml.safe_load((folder / f"{trait}.yaml").read_text(encoding="utf-8"))
    rows = [
        (text, language, label)
        for label, side in ((1, "positive"), (0, "negative"))
        for language, sentences in content[side].items()
        for text in sentences
    ]
    known = {text for text, _language, _label in rows}
    for other in content.get("negative_from", ()):
        examples = load_examples(other, folder)
        pairs = zip(examples.texts, examples.languages, strict=True)
        rows += [(text, language, 0) for text, language in pairs if text not in known]
    texts, languages, labels = zip(*rows, strict=True)
    return Examples(texts, languages, labels)


def fit_probes(embedder: Embedder) -> Probes:
    """Return the probes of this model. Raises EmbeddingError."""
    examples = {trait: load_examples(trait) for trait in TRAITS}
    texts = list(dict.fromkeys(text for rows in examples.values() for text in rows.texts))
    vectors = dict(zip(texts, embedder.embed_queries(texts), strict=True))
    probes = {
        trait: fit_probe(np.stack([vectors[text] for text in rows.texts]), rows.labels)
        for trait, rows in examples.items()
        if trait != _RARE_TRAIT
    }
    rare = examples[_RARE_TRAIT]
    others = [text for text in texts if text not in set(rare.texts)]
    labels = [*rare.labels, *(0 for _text in others)]
    rows = np.stack([vectors[text] for text in [*rare.texts, *others]])
    return {**probes, _RARE_TRAIT: fit_probe(rows, labels, penalty=_RARE_PENALTY)}


def fit_missing_probes() -> None:
    """Fit and store probes for the models of current index generations that have none for the shipped sentences.

    If the dimension of a model changes, its probes are fitted again with the first vector of the new generation. If a model does not answer, log a warning and try again after some minutes.
    """
    # Of two generations of a model, the later one has the dimension with which queries are embedded now.
    newest = {
        (row.provider, row.model): row for row in sorted(generations.embeddable_generations(), key=lambda r: r.pk)
    }
    for key, generation in newest.items():
        if not _needs_probes(*key, generation.dimension) or time.monotonic() < _next_attempts.get(key, 0.0):
            continue
        try:
            _store_probes(*key, fit_probes(generations.embedder_for(generation)))
        except EmbeddingError as error:
            _next_attempts[key] = time.monotonic() + _RETRY_SECONDS
            log.warning("the probes of %s could not be fitted: %s", generation.model, error)


def _needs_probes(provider: str, model: str, dimension: int | None) -> bool:
    """Return True if probes are missing; of any length if the dimension (None) is not known yet."""
    if is_shipped(provider, model):
        return False
    rows = Probe.objects.filter(provider=provider, model=model, examples=_examples_hash())
    sizes = [len(bytes(weights)) for weights in rows.values_list("weights", flat=True)]
    expected = None if dimension is None else _WEIGHT_BYTES * (dimension + 1)
    return sum(expected in (None, size) for size in sizes) < len(TRAITS)


def _store_probes(provider: str, model: str, probes: Probes) -> None:
    for trait, weights in probes.items():
        Probe.objects.update_or_create(
            provider=provider,
            model=model,
            trait=trait,
            defaults={"weights": np.asarray(weights, dtype="<f4").tobytes(), "examples": _examples_hash()},
        )
    forget_probes(provider, model)


def _examples_hash() -> str:
    content = b"".join((FOLDER / f"{trait}.yaml").read_bytes() for trait in TRAITS)
    return hashlib.sha256(content).hexdigest()


def fit_probe(vectors: Vectors, labels: Sequence[int], *, penalty: float = _PENALTY) -> Weights:
    """Fit a logistic regression with Newton's method (iteratively reweighted least squares); return its weights.

    The vectors (sentences, dimension) are centred and scaled by one factor, so that the penalty means the same for all
    models; centre and factor are folded into the weights.
    """
    centre, scale = vectors.mean(axis=0), 1 / vectors.std()
    design = np.hstack([(vectors - centre) * scale, np.ones((len(vectors), 1))]).astype(np.float64)
    target = np.array(labels, dtype=np.float64)
    penalties = np.append(np.full(vectors.shape[1], penalty * len(vectors)), 1e-6)
    weights = np.zeros(design.shape[1])
    for _ in range(_MAX_STEPS):
        predicted = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        gradient = design.T @ (predicted - target) + penalties * weights
        curvature = design.T @ (design * (predicted * (1 - predicted))[:, None]) + np.diag(penalties)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    slope = weights[:-1] * scale
    return np.append(slope, weights[-1] - centre @ slope).astype(np.float32)
