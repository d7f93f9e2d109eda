"""Taking turns: whoever was served longest ago comes first."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
# Of so many that were served it is remembered when.
_MOST_REMEMBERED = 10_000


class Turns(Generic[K]):
    """Remembers, within this process, who was served when."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clock = itertools.count(1)
        self._served: dict[K, int] = {}

    def in_order(self, waiting: Iterable[K]) -> list[K]:
        """Those who wait, longest ago served first; who never was comes before all, in the order given."""
        with self._lock:
            return sorted(dict.fromkeys(waiting), key=lambda key: self._served.get(key, 0))

    def note(self, key: K) -> None:
        """Remember that somebody was served now."""
        with self._lock:
            if len(self._served) >= _MOST_REMEMBERED:
                self._served.clear()
            self._served[key] = next(self._clock)
