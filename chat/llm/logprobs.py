"""The log probabilities of an answer's tokens, which clients can request. They are not stored with the answer."""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Mapping
from typing import Any

from chat import cached_values

MAX_CHARS = 32_000_000  # of JSON, for one answer
# A client in another process reads them when the answer has ended, and one that lost its connection repeats its request.
_CACHE_TTL = 300  # seconds
_FIELDS = ("content", "refusal")


class LogprobsError(Exception):
    """Log probabilities are invalid, or there are too many."""


class Logprobs:
    """Collects the entries of the tokens, unchanged and in their order; as JSON, which takes a tenth of the memory."""

    def __init__(self, tokens: list[tuple[str, str]] | None = None) -> None:
        self._tokens = tokens or []
        self._size = 0

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self._tokens)

    def add(self, value: Mapping[str, Any] | None) -> None:
        """Add the field `logprobs` of a choice. Raises LogprobsError."""
        if not value:
            return
        for name in _FIELDS:
            entries = value.get(name) or []
            if not isinstance(entries, list):
                raise LogprobsError(name)
            for entry in entries:
                token = json.dumps(entry)
                self._size += len(token)
                if self._size > MAX_CHARS:
                    raise LogprobsError("too many logprobs")
                self._tokens.append((name, token))

    def since(self, position: int) -> dict[str, Any] | None:
        """Return the entries of the tokens from this one on as the field of a choice; None if there are none."""
        tokens = self._tokens[position:]
        if not tokens:
            return None
        return {field: [json.loads(token) for name, token in tokens if name == field] or None for field in _FIELDS}

    def save(self, turn_id: uuid.UUID) -> None:
        """Keep these for some minutes, for all processes."""
        cached_values.keep(_cache_key(turn_id), zlib.compress(json.dumps(self._tokens).encode(), level=1), _CACHE_TTL)


def load_logprobs(turn_id: uuid.UUID) -> Logprobs:
    """Return those of an answer that ended some minutes ago at most, otherwise none."""
    kept = cached_values.kept(_cache_key(turn_id), bytes)
    return Logprobs([(name, token) for name, token in json.loads(zlib.decompress(kept))] if kept else None)


def _cache_key(turn_id: uuid.UUID) -> str:
    return f"logprobs:{turn_id.hex}"
