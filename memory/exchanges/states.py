"""The state of exchanges in memory, as people see it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from memory.models import Exchange, IndexGeneration, Job

_NAMES = {Job.State.DONE: "remembered", Job.State.FAILED: "failed"}


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The state of an exchange: remembering, waiting (for a dependency), remembered, failed or forgotten.

    The other fields are those of a forgotten exchange; `forgotten_by` is the name of the person, "" if unknown.
    """

    name: str
    forgotten_at: datetime | None = None
    forgotten_by: str = ""
    forgotten_by_id: uuid.UUID | None = None


def states_of(exchange_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, MemoryState]:
    """Return the states of these exchanges in the active index generation, by id."""
    ids = [id for id in exchange_ids if id]
    if not ids:
        return {}
    # A row for each index generation: there are at most two, of which one is active.
    rows = Exchange.objects.filter(id__in=ids).values_list(
        "id",
        "forgotten_at",
        "forgotten_by_id",
        "forgotten_by__name",
        "embeddings__generation__state",
        "embeddings__state",
        "embeddings__error",
        "embeddings__failures",
    )
    states: dict[uuid.UUID, MemoryState] = {}
    for id, forgotten_at, by_id, by, generation, state, error, failures in rows:
        if forgotten_at:
            states[id] = MemoryState("forgotten", forgotten_at, by or "", by_id)
        elif generation == IndexGeneration.State.ACTIVE:
            states[id] = MemoryState(_job_state(state, error, failures))
    return states


def memory_states(exchange_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, str]:
    """Return the names of these states, by exchange id."""
    return {id: state.name for id, state in states_of(exchange_ids).items()}


def _job_state(state: str, error: str, failures: int) -> str:
    if state == Job.State.PENDING and error and not failures:
        return "waiting"
    return _NAMES.get(Job.State(state), "remembering")
