"""Startup and shutdown of a web process: the hub, running answers and the embedding model."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import Any

from django.conf import settings
from django.db import DatabaseError

from cato_web.mcp.asgi import tools
from chat import services
from chat.answers import runner
from chat.executors import run_in_db_thread, run_in_recall_thread
from chat.realtime import frames
from chat.realtime.hub import hub

log = logging.getLogger(__name__)

_REQUEUE_INTERVAL = 5.0  # seconds
_WARM_UP_ATTEMPTS, _WARM_UP_INTERVAL = 60, 0.5  # seconds between attempts

_task: asyncio.Task[Any] | None = None


async def run(receive: Any, send: Any) -> None:
    """Handle the ASGI lifespan protocol."""
    global _task
    # The server keeps no reference to this task and the event loop only a weak one, so it could be collected as garbage.
    _task = asyncio.current_task()
    await receive()
    await hub.open(on_stop=runner.stop_local)
    work = [asyncio.create_task(_warm_up_loop()), asyncio.create_task(_requeue_loop())]
    await send({"type": "lifespan.startup.complete"})
    await receive()
    for task in work:
        task.cancel()
    await tools.close()
    await runner.shutdown()
    await hub.close()
    await send({"type": "lifespan.shutdown.complete"})


async def _requeue_loop() -> None:
    """Start queued turns whose predecessor's process died; other answers start the next turn themselves."""
    while True:
        await asyncio.sleep(_REQUEUE_INTERVAL)
        try:
            for turn_id in await run_in_db_thread(services.start_all_queued):
                hub.publish(await run_in_db_thread(frames.turn, turn_id))
                runner.start_answer(turn_id)
        except DatabaseError as error:
            log.warning("could not start queued turns: %s", type(error).__name__)


async def _warm_up_loop() -> None:
    """Prepare for the first message, then exempt what is loaded from garbage collection.

    The vector store, which nobody waits for, can take a while to start.
    """
    for _attempt in range(_WARM_UP_ATTEMPTS):
        if await run_in_recall_thread(_warm_up):
            break
        await asyncio.sleep(_WARM_UP_INTERVAL)
    else:
        log.warning("the vector store does not answer yet; recall uses keywords until it does")
    # What is loaded stays until the end. Garbage collections that look at it stop all answers for .14 s each.
    gc.collect()
    gc.freeze()


def _warm_up() -> bool:
    """Load what the first message would wait for; return False if the vector store does not answer yet."""
    from memory import api as memory
    from memory.api import EmbeddingError, VectorStoreUnavailableError

    conf = settings.CATO.vector_store
    if not conf.enabled:
        return True
    try:
        if conf.embedding_provider == "local":
            memory.get_embedder().embed_query("ready")
        memory.connect_vector_store()
    except EmbeddingError as error:
        log.warning("recall is not ready: %s", error)
    except VectorStoreUnavailableError:
        return False
    return True
