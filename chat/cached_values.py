"""Values that the cache keeps for a while, and that are read anew where it has none or its server fails."""

from __future__ import annotations

import logging
import pickle
from typing import TypeVar

from django.core.cache import cache

T = TypeVar("T")
log = logging.getLogger(__name__)


def keep(key: str, value: object, seconds: int) -> None:
    """Keep a value for this time, for all processes if they share a cache server. A failure of it is logged."""
    from redis.exceptions import RedisError

    try:
        cache.set(key, value, seconds)
    except (RedisError, OSError) as error:
        log.warning("A value could not be kept in the cache: %s", error)


def kept(key: str, kind: type[T]) -> T | None:
    """Return the value of this class that is kept, None if there is none. A failure of the server is logged."""
    from redis.exceptions import RedisError

    try:
        found = cache.get(key)
    # The last three: a value that another version of Cato has kept, whose class differs.
    except (RedisError, OSError, pickle.UnpicklingError, AttributeError, ImportError) as error:
        log.warning("A value could not be read from the cache: %s", error)
        return None
    return found if isinstance(found, kind) else None
