"""Fair scheduling: the key served longest ago comes first."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
# Number of served keys to remember.
_MAX_REMEMBERED = 10_000


class Turns(Generic[K]):
    """Remember, within this process, when each key was last served."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clock = itertools.count(1)
        self._served: dict[K, int] = {}

    def in_order(self, keys: Iterable[K]) -> list[K]:
        """Return the distinct waiting keys, served longest ago first.

        Keys never served come first, in the given order.
        """
        with self._lock:
            return sorted(dict.fromkeys(keys), key=lambda key: self._served.get(key, 0))

    def note(self, key: K) -> None:
        """Record that this key is served now."""
        with self._lock:
            if len(self._served) >= _MAX_REMEMBERED:
                self._served.clear()
            self._served[key] = next(self._clock)
