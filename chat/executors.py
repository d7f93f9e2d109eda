"""Thread pools for database and rendering work of the event loop; their threads give each connection back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from django.db import close_old_connections

P = ParamSpec("P")
R = TypeVar("R")

RECALL_THREADS = 4
_database = ThreadPoolExecutor(4, thread_name_prefix="database")
# Separate, because recall waits for the embedding model and the vector store and must not delay saving answers.
_recall = ThreadPoolExecutor(RECALL_THREADS, thread_name_prefix="recall")
_rendering = ThreadPoolExecutor(2, thread_name_prefix="rendering")


async def run_in_db_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `call` in a thread whose database connection is closed afterwards."""
    return await _run(_database, lambda: call(*args, **kwargs))


async def run_in_recall_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `call`, which may wait for the embedding model or the vector store, in a thread."""
    return await _run(_recall, lambda: call(*args, **kwargs))


async def run_in_render_thread(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `call`, which renders a possibly long text without the database, in a thread."""
    return await _run(_rendering, lambda: call(*args, **kwargs))


async def _run(pool: ThreadPoolExecutor, call: Callable[[], R]) -> R:
    def with_connections_closed() -> R:
        try:
            return call()
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(pool, with_connections_closed)
