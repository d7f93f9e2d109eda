"""Estimate when a queue will be empty from how it shrank while this process looked at it."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque

# Seconds. The estimate follows the speed of the last ten minutes, and needs ten seconds of observation.
_WINDOW, _MIN_OBSERVATION = 600.0, 10.0
_MAX_QUEUES = 256
_MAX_SAMPLES = 120

_samples: OrderedDict[object, deque[tuple[float, int]]] = OrderedDict()
_lock = threading.Lock()


def estimate_remaining(queue: object, waiting: int) -> float | None:
    """Return the seconds until `queue`, of which `waiting` items are left now, is empty; None if not known yet.

    `queue` is any hashable value that identifies it. Each call adds an observation.
    """
    now = time.monotonic()
    with _lock:
        seen = _samples.setdefault(queue, deque(maxlen=_MAX_SAMPLES))
        _samples.move_to_end(queue)
        while len(_samples) > _MAX_QUEUES:
            _samples.popitem(last=False)
        while seen and (now - seen[0][0] > _WINDOW or seen[0][1] < waiting):
            seen.popleft()  # too old, or the queue has grown since
        if not seen or now - seen[-1][0] >= _WINDOW / _MAX_SAMPLES:
            seen.append((now, waiting))
        first_time, first_waiting = seen[0]
    done = first_waiting - waiting
    if now - first_time < _MIN_OBSERVATION or not done:
        return None
    return waiting * (now - first_time) / done
