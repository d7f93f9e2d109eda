"""Stops running answers whose author has lost access."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping

from django.db import DatabaseError

from chat import access
from chat.answers.stream import AnswerStream
from chat.executors import run_in_db_thread

log = logging.getLogger(__name__)

_CHECK_INTERVAL = 2.0  # seconds; an answer ends within three seconds after its author loses access


async def watch(running: Mapping[uuid.UUID, AnswerStream]) -> None:
    """Check the running answers, by turn, until there are none.

    Stop an answer once its author may no longer read the thread, or its API token is no longer valid.
    """
    while running:
        await asyncio.sleep(_CHECK_INTERVAL)
        try:
            lost = await run_in_db_thread(access.turns_without_access, list(running))
        except DatabaseError as error:
            log.warning("the access of running answers could not be checked: %s", type(error).__name__)
            continue
        for turn_id in lost & running.keys():
            running[turn_id].has_lost_access = True
            running[turn_id].stopped.set()
