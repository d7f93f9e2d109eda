"""Fit the probes of an embedding model on the labelled sentences in `memory/retrieval/traits/`."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from memory.embeddings.base import Embedder, Vectors
from memory.errors import EmbeddingError
from memory.index import generations
from memory.models import Probe as ProbeRow
from memory.retrieval.probes import (
    CORRECTION,
    DOCUMENT_TRAITS,
    FOLDER,
    INFORMATIVE,
    MESSAGE_TRAITS,
    STANDING_INSTRUCTION,
    TRAITS,
    KernelProbe,
    LinearProbe,
    Probe,
    Probes,
    forget_probes,
    from_bytes,
    gaussian_kernel,
    is_shipped,
    sigmoid,
    to_bytes,
)

log = logging.getLogger(__name__)

# Strength of the L2 penalty for each sentence. From .05 to .6 the accuracy on held-out sentences differs little; a
# stronger penalty keeps more questions in languages without examples.
_PENALTY = 0.3
# Traits that a linear probe recognises badly: their sentences resemble others in subject and differ in few words. Their
# probes compare a message with the sentences that a linear probe decides least clearly, at most so many.
_KERNEL_TRAITS = {
    "former_state": 1000,
    "broad": 1000,
    "what_happened": 500,
    STANDING_INSTRUCTION: 1500,
    INFORMATIVE: 500,
    CORRECTION: 500,
}
_KERNEL_PENALTY = 1e-5
_LANDMARK_PENALTY = 0.02  # of the linear probe that chooses them
_MAX_STEPS = 50
# Changes when probes are fitted in another way, so that those of other models are fitted again.
_METHOD = b"landmarks 1"
# Seconds until a process tries again to fit probes with a model that failed.
_RETRY_SECONDS = 300.0
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
        known.update(examples.texts)
    texts, languages, labels = zip(*rows, strict=True)
    return Examples(texts, languages, labels)


def fit_probes(embedder: Embedder, traits: Sequence[str] = TRAITS) -> Probes:
    """Return the probes of this model for these traits. Raises EmbeddingError."""
    examples = {trait: _examples_for_fitting(trait) for trait in traits}
    probes: dict[str, Probe] = {}
    for kind, embed in ((MESSAGE_TRAITS, embedder.embed_queries), (DOCUMENT_TRAITS, embedder.embed_documents)):
        of_kind = {trait: rows for trait, rows in examples.items() if trait in kind}
        distinct = list(dict.fromkeys(text for rows in of_kind.values() for text in rows.texts))
        vectors = dict(zip(distinct, embed(distinct), strict=True)) if distinct else {}
        for trait, rows in of_kind.items():
            probes[trait] = _fit(trait, np.stack([vectors[text] for text in rows.texts]), rows.labels)
    return probes


def _examples_for_fitting(trait: str) -> Examples:
    rows = load_examples(trait)
    if trait != STANDING_INSTRUCTION:
        return rows
    # Instructions are rare, so the sentences of all other traits are examples without it.
    known, others = set(rows.texts), dict[str, str]()
    for other in map(load_examples, MESSAGE_TRAITS):
        pairs = zip(other.texts, other.languages, strict=True)
        others.update((text, language) for text, language in pairs if text not in known)
    return Examples((*rows.texts, *others), (*rows.languages, *others.values()), (*rows.labels, *[0] * len(others)))


def _fit(trait: str, vectors: Vectors, labels: Sequence[int]) -> Probe:
    if trait in _KERNEL_TRAITS:
        return fit_kernel_probe(vectors, labels, _KERNEL_TRAITS[trait])
    return fit_probe(vectors, labels)


def fit_missing_probes() -> None:
    """Fit and store probes for the models of current index generations that have none for the shipped sentences.

    If the dimension of a model changes, its probes are fitted again with the first vector of the new generation. If a
    model does not answer, log a warning and try again after some minutes.
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
    rows = ProbeRow.objects.filter(provider=provider, model=model, examples=examples_hash())
    stored = [from_bytes(bytes(weights)) for weights in rows.values_list("weights", flat=True)]
    return sum(probe is not None and dimension in (None, probe.dimension) for probe in stored) < len(TRAITS)


def _store_probes(provider: str, model: str, probes: Probes) -> None:
    for trait, probe in probes.items():
        ProbeRow.objects.update_or_create(
            provider=provider,
            model=model,
            trait=trait,
            defaults={"weights": to_bytes(probe), "examples": examples_hash()},
        )
    forget_probes(provider, model)


def examples_hash() -> str:
    """Return a hash of the labelled sentences and of the way in which probes are fitted on them."""
    content = _METHOD + b"".join((FOLDER / f"{trait}.yaml").read_bytes() for trait in TRAITS)
    return hashlib.sha256(content).hexdigest()


def fit_probe(vectors: Vectors, labels: Sequence[int], *, penalty: float = _PENALTY) -> LinearProbe:
    """Fit a logistic regression with an L2 penalty of this strength for each sentence.

    The vectors (sentences, dimension) are centred and scaled by one factor, so that the penalty means the same for all
    models; centre and factor are folded into the weights.
    """
    centre, scale = vectors.mean(axis=0), 1 / vectors.std()
    dimension = vectors.shape[1]
    weights = _fit_logistic((vectors - centre) * scale, labels, penalty * np.eye(dimension))
    slope = weights[:-1] * scale
    return LinearProbe(np.append(slope, weights[-1] - centre @ slope).astype(np.float32))


def fit_kernel_probe(vectors: Vectors, labels: Sequence[int], landmark_count: int) -> KernelProbe:
    """Fit a kernel logistic regression (Nyström's method) with at most so many of the sentences as landmarks.

    The vectors (sentences, dimension) are centred and scaled to a mean square of 1.
    """
    centre = vectors.mean(axis=0)
    scale = 1 / np.sqrt(((vectors - centre) ** 2).sum(axis=1).mean())
    normalised = (vectors - centre) * scale
    linear = fit_probe(vectors, labels, penalty=_LANDMARK_PENALTY).probability(vectors)
    clearness = np.where(np.array(labels) == 1, linear, 1 - linear)
    chosen = normalised[np.argsort(clearness, kind="stable")[:landmark_count]]
    step = np.abs(chosen).max() / 127
    landmarks = np.round(chosen / step).astype(np.int8)
    between = gaussian_kernel(landmarks * step, landmarks * step)
    penalties = _KERNEL_PENALTY * (between + 1e-6 * np.eye(len(landmarks)))
    weights = _fit_logistic(gaussian_kernel(normalised, landmarks * step), labels, penalties)
    return KernelProbe(
        centre=centre.astype(np.float32),
        scale=np.asarray(scale, dtype=np.float32),
        landmarks=landmarks,
        step=np.asarray(step, dtype=np.float32),
        weights=weights.astype(np.float32),
    )


def _fit_logistic(features: NDArray[Any], labels: Sequence[int], penalties: NDArray[Any]) -> NDArray[np.float64]:
    """Fit a logistic regression with Newton's method (iteratively reweighted least squares); return its weights.

    `features` (sentences, count); `penalties` (count, count) is the matrix of the quadratic penalty for each sentence.
    The bias, last of the weights (count + 1,), has none.
    """
    design = np.hstack([features, np.ones((len(features), 1), dtype=features.dtype)])
    target = np.array(labels, dtype=np.float64)
    penalty = np.zeros((design.shape[1], design.shape[1]))
    penalty[:-1, :-1] = len(features) * penalties
    penalty[-1, -1] = 1e-6
    weights = np.zeros(design.shape[1])
    for _ in range(_MAX_STEPS):
        predicted = sigmoid(design @ weights)
        gradient = (predicted - target) @ design + penalty @ weights
        curvature = design.T @ (design * (predicted * (1 - predicted)).astype(design.dtype)[:, None]) + penalty
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-6 * max(1, np.abs(weights).max()):
            break
    return weights
