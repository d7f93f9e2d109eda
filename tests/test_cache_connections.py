"""Threads share the connections to the cache server."""

from __future__ import annotations

from cato_web.cache_connections import SharedConnectionPool


def test_the_pool_is_the_same_for_the_same_server_and_options() -> None:
    pool = SharedConnectionPool.from_url("redis://127.0.0.1:1/0", max_connections=3)

    assert SharedConnectionPool.from_url("redis://127.0.0.1:1/0", max_connections=3) is pool
    assert SharedConnectionPool.from_url("redis://127.0.0.1:1/0", max_connections=4) is not pool
    assert SharedConnectionPool.from_url("redis://127.0.0.1:1/1", max_connections=3) is not pool
