"""Probes: what a message asks for, read from its vector.

A probe is a logistic regression over the vector of a message, fitted on labelled sentences
(`memory/retrieval/tuning/probe_fitting.py`). It works in every language that the embedding model knows, and does not
depend on what is stored. The probes of the shipped model are part of the package; those of others are in the database.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from memory.embeddings import multilingual_e5
from memory.embeddings.base import Vectors
from memory.models import Probe as ProbeRow

SHIPPED_MODEL = multilingual_e5.NAME
# The traits of a message that are read from its query vector, and those that are read from a document vector: whether a
# text says how answers should be from now on, whether it states something about the people who write, and whether it says
# that something stated before is wrong or outdated.
MESSAGE_TRAITS = ("wants_memory", "follow_up", "latest_state", "former_state", "broad", "what_happened")
STANDING_INSTRUCTION, INFORMATIVE, CORRECTION = "standing_instruction", "informative", "correction"
DOCUMENT_TRAITS = (STANDING_INSTRUCTION, INFORMATIVE, CORRECTION)
TRAITS = (*MESSAGE_TRAITS, *DOCUMENT_TRAITS)

# Labelled sentences, and the probes fitted on them for the shipped model.
FOLDER = Path(__file__).with_name("traits")
SHIPPED = FOLDER / f"{SHIPPED_MODEL}.npz"
_EXAMPLES = "examples"  # the array with the hash of the sentences


@dataclass(frozen=True, slots=True)
class LinearProbe:
    """A logistic regression over the vector itself: `weights` (dimension + 1,), the bias last."""

    weights: NDArray[np.float32]

    @property
    def dimension(self) -> int:
        """Return the length of the vectors that it reads."""
        return len(self.weights) - 1

    def probability(self, vectors: Vectors) -> NDArray[np.float64]:
        """Return the probabilities (count,) that the texts with these vectors (count, dimension) have the trait."""
        return sigmoid(vectors @ self.weights[:-1] + self.weights[-1])


@dataclass(frozen=True, slots=True)
class KernelProbe:
    """A logistic regression over the similarities of the vector to those of some labelled sentences, the landmarks.

    `landmarks` (count, dimension) are normalised vectors in units of `step`, `weights` (count + 1,) has the bias last.
    """

    centre: NDArray[np.float32]
    scale: NDArray[np.float32]
    landmarks: NDArray[np.int8]
    step: NDArray[np.float32]
    weights: NDArray[np.float32]

    @property
    def dimension(self) -> int:
        """Return the length of the vectors that it reads."""
        return len(self.centre)

    def probability(self, vectors: Vectors) -> NDArray[np.float64]:
        """Return the probabilities (count,) that the texts with these vectors (count, dimension) have the trait."""
        similarities = gaussian_kernel((vectors - self.centre) * self.scale, self.landmarks * self.step)
        return sigmoid(similarities @ self.weights[:-1] + self.weights[-1])


Probe = LinearProbe | KernelProbe
Probes = Mapping[str, Probe]
_probes: dict[tuple[str, str], Probes] = {}


@dataclass(frozen=True, slots=True)
class MessageTraits:
    """The probability, from 0 to 1, that a message has each trait.

    `wants_memory`: stored exchanges could serve the answer, unlike for small talk and general tasks. `follow_up`: it
    depends on the previous messages. `latest_state`: it asks how things are now. `former_state`: it asks how they were
    before a change. `broad`: it asks for a summary, a list or an order of events. `what_happened`: it asks what happened
    or was discussed in a period, whatever the subject.
    """

    wants_memory: float
    follow_up: float
    latest_state: float
    former_state: float
    broad: float
    what_happened: float


def read_traits(vector: Vectors, provider: str, model: str) -> MessageTraits | None:
    """Return the traits of a message by its query vector (dimension,), or None if the model has no probes yet.

    Probes of another dimension, which the same model had before, do not count.
    """
    probes = _probes_of(provider, model, len(vector))
    if probes is None:
        return None
    return MessageTraits(**{trait: float(probes[trait].probability(vector[None])[0]) for trait in MESSAGE_TRAITS})


def read_document_trait(trait: str, vectors: Vectors, provider: str, model: str) -> list[float] | None:
    """Return for each text the probability that it has one of `DOCUMENT_TRAITS`.

    `vectors` (count, dimension) are their document vectors. Return None if the model has no probes yet.
    """
    probes = _probes_of(provider, model, vectors.shape[1])
    return None if probes is None else [float(p) for p in probes[trait].probability(vectors)]


def is_shipped(provider: str, model: str) -> bool:
    """Return True if the probes of this model are part of the package."""
    return (provider, model) == ("local", SHIPPED_MODEL)


def sigmoid(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Return the probabilities of these logits."""
    probabilities: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(logits, -30, 30).astype(np.float64)))
    return probabilities


def gaussian_kernel(a: NDArray[Any], b: NDArray[Any]) -> NDArray[np.float32]:
    """Return the similarities (count of a, count of b), from 0 to 1, of the rows of two arrays (count, dimension)."""
    a, b = np.asarray(a, dtype=np.float32), np.asarray(b, dtype=np.float32)
    # Unlike (a * a).sum(axis=1), without a copy of the rows.
    squares_a, squares_b = np.einsum("ij,ij->i", a, a), np.einsum("ij,ij->i", b, b)
    squares = squares_a[:, None] + squares_b[None, :] - 2 * a @ b.T
    similarities: NDArray[np.float32] = np.exp(-np.maximum(squares, 0))
    return similarities


def forget_probes(provider: str, model: str) -> None:
    """Read the probes of this model again at their next use."""
    _probes.pop((provider, model), None)


def save_shipped(probes: Probes, examples: str) -> None:
    """Replace the probes in the package, which were fitted on the sentences with this hash."""
    arrays = {f"{trait}.{name}": array for trait, probe in probes.items() for name, array in _arrays(probe).items()}
    arrays[_EXAMPLES] = np.array(examples)
    np.savez_compressed(SHIPPED, **arrays)


def load_shipped() -> Probes:
    """Return the probes in the package."""
    arrays: dict[str, dict[str, Any]] = {}
    with np.load(SHIPPED) as file:
        for key in set(file.files) - {_EXAMPLES}:
            trait, name = key.split(".")
            arrays.setdefault(trait, {})[name] = file[key]
    return {trait: _build(found) for trait, found in arrays.items()}


def shipped_examples() -> str:
    """Return the hash of the sentences on which the probes in the package were fitted."""
    with np.load(SHIPPED) as file:
        return str(file[_EXAMPLES])


def to_bytes(probe: Probe) -> bytes:
    """Return a probe in the form in which it is stored."""
    buffer = io.BytesIO()
    np.savez(buffer, **_arrays(probe))
    return buffer.getvalue()


def from_bytes(content: bytes) -> Probe | None:
    """Return a stored probe, or None if an earlier version stored it."""
    try:
        with np.load(io.BytesIO(content)) as file:
            return _build({name: file[name] for name in file.files})
    except (ValueError, BadZipFile, TypeError):
        return None


def _arrays(probe: Probe) -> dict[str, Any]:
    return {field.name: getattr(probe, field.name) for field in fields(probe)}


def _build(arrays: dict[str, Any]) -> Probe:
    return KernelProbe(**arrays) if "landmarks" in arrays else LinearProbe(**arrays)


def _probes_of(provider: str, model: str, dimension: int) -> Probes | None:
    """Return the probes of a model for vectors of this length; they are read once per process."""
    key = (provider, model)
    known = _probes.get(key)
    if known is not None and _fit_together(known, dimension):
        return known
    found = load_shipped() if is_shipped(provider, model) else _load_stored(provider, model)
    if not set(TRAITS) <= set(found) or not _fit_together(found, dimension):
        return None
    _probes[key] = found
    return found


def _fit_together(probes: Probes, dimension: int) -> bool:
    return all(probe.dimension == dimension for probe in probes.values())


def _load_stored(provider: str, model: str) -> Probes:
    rows = ProbeRow.objects.filter(provider=provider, model=model).values_list("trait", "weights")
    return {trait: probe for trait, content in rows if (probe := from_bytes(bytes(content))) is not None}
