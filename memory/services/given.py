"""Vectors that came with an exchange and so are not made here."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from memory.models import Generation, Record


def vectors_given(exchange_ids: Iterable[uuid.UUID], generation: Generation) -> dict[uuid.UUID, NDArray[np.float32]]:
    """The vectors (1, dimension) that records brought themselves for this generation."""
    rows = Record.objects.filter(exchange_id__in=list(exchange_ids), generation=generation).exclude(vector=None)
    return {row.exchange_id: np.frombuffer(bytes(row.vector or b""), dtype="<f4")[None] for row in rows}
