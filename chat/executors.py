"""The one way from the event loop to the database and back: small thread pools that hold no connection between hops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

_database = ThreadPoolExecutor(4, thread_name_prefix="database")
# Recall waits for the embedding model and the vector store; it must not keep answers from being saved.
_memory = ThreadPoolExecutor(4, thread_name_prefix="recall")

_rendering = ThreadPoolExecutor(2, thread_name_prefix="rendering")


async def run_in_db_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `call` in a thread with a database connection that is given back afterwards."""
    return await _run(_database, lambda: call(*args, **kwargs))


async def run_in_recall_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The same for what may wait for the embedding model or the vector store."""
    return await _run(_memory, lambda: call(*args, **kwargs))


async def to_renderer(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """The same for drawing what may be long, which needs no database; the loop goes on meanwhile."""
    return await _run(_rendering, lambda: call(*args, **kwargs))


async def _run(pool: ThreadPoolExecutor, call: Callable[[], R]) -> R:
    def with_connections_closed() -> R:
        try:
            return call()
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(pool, with_connections_closed)
