"""Linear probes: what a message asks for, read from its vector.

A probe is a logistic regression over the vector of a message, fitted on labelled sentences
(`memory/retrieval/tuning/probe_fitting.py`). It works in every language that the embedding model knows, and does not
depend on what is stored. The probes of the shipped model are part of the package; those of others are in the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory.embeddings import multilingual_e5
from memory.embeddings.base import Vectors
from memory.models import Probe

SHIPPED_MODEL = multilingual_e5.NAME
TRAITS = ("wants_memory", "follow_up", "latest_state", "former_state", "broad", "standing_instruction")
Weights = NDArray[np.float32]  # (dimension + 1,), the bias last
Probes = Mapping[str, Weights]

# Labelled sentences, and the probes fitted on them for the shipped model.
FOLDER = Path(__file__).with_name("traits")
SHIPPED = FOLDER / f"{SHIPPED_MODEL}.npz"
_probes: dict[tuple[str, str], Probes] = {}


@dataclass(frozen=True, slots=True)
class MessageTraits:
    """The probability, from 0 to 1, that a message has each trait.

    `wants_memory`: stored exchanges could serve the answer, unlike for small talk and general tasks. `follow_up`: it
    depends on the previous messages. `latest_state`: it asks how things are now. `former_state`: it asks how they were
    before a change. `broad`: it asks for a summary, a list or an order of events. `standing_instruction`: it says how
    answers should be from now on.
    """

    wants_memory: float
    follow_up: float
    latest_state: float
    former_state: float
    broad: float
    standing_instruction: float


def read_traits(vector: Vectors, provider: str, model: str) -> MessageTraits | None:
    """Return the traits of a message by its query vector (dimension,), or None if the model has no probes yet.

    Probes of another dimension, which the same model had before, do not count.
    """
    probes = _probes_of(provider, model, len(vector))
    if probes is None:
        return None
    return MessageTraits(**{trait: probability(probes[trait], vector) for trait in TRAITS})


def is_shipped(provider: str, model: str) -> bool:
    """Return True if the probes of this model are part of the package."""
    return (provider, model) == ("local", SHIPPED_MODEL)


def probability(weights: Weights, vector: Vectors) -> float:
    """Return the probability that the message with this vector (dimension,) has the trait."""
    return float(1 / (1 + np.exp(-np.clip(vector @ weights[:-1] + weights[-1], -30, 30))))


def forget_probes(provider: str, model: str) -> None:
    """Read the probes of this model again at their next use."""
    _probes.pop((provider, model), None)


def _probes_of(provider: str, model: str, dimension: int) -> Probes | None:
    """Return the probes of a model for vectors of this length; they are read once per process."""
    key = (provider, model)
    if key not in _probes or not _fit_together(_probes[key], dimension):
        found = _load_shipped() if is_shipped(provider, model) else _load_stored(provider, model)
        if not set(TRAITS) <= set(found) or not _fit_together(found, dimension):
            return None
        _probes[key] = found
    return _probes[key]


def _fit_together(probes: Probes, dimension: int) -> bool:
    return all(len(weights) == dimension + 1 for weights in probes.values())


def _load_shipped() -> Probes:
    with np.load(SHIPPED) as file:
        return {trait: file[trait] for trait in file.files}


def _load_stored(provider: str, model: str) -> Probes:
    rows = Probe.objects.filter(provider=provider, model=model).values_list("trait", "weights")
    return {trait: np.frombuffer(bytes(weights), dtype="<f4") for trait, weights in rows}
