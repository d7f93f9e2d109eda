"""One pool of connections to the cache server for all threads of a process.

Django makes a cache client, and so a pool, for each request. Opening its connection takes 3 ms of processor time.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from redis import ConnectionPool


class SharedConnectionPool:
    """The `pool_class` of Django's Redis cache: the same pool for the same server and options."""

    @staticmethod
    @cache
    def from_url(url: str, **options: Any) -> ConnectionPool:
        """Return the pool of the server at this URL."""
        return ConnectionPool.from_url(url, **options)
