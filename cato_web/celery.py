"""The worker: runs the tasks of memory and chat when nudged, and sweeps on a timer for what no nudge told of."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutting_down
from django.db import DatabaseError, close_old_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")

log = logging.getLogger(__name__)

app = Celery("cato")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory", "chat"])

_SWEEP_EVERY = 3.0
_ending = threading.Event()


@worker_ready.connect
def begin_sweeping(**kwargs: Any) -> None:
    threading.Thread(target=_sweep_for_ever, name="sweep", daemon=True).start()


@worker_shutting_down.connect
def stop_sweeping(**kwargs: Any) -> None:
    _ending.set()


def _sweep_for_ever() -> None:
    _heedful_of_the_database(catch_up)
    while not _ending.wait(_SWEEP_EVERY):
        _heedful_of_the_database(sweep)


def _heedful_of_the_database(work: Callable[[], None]) -> None:
    try:
        work()
    except DatabaseError as error:
        log.warning("%s could not run: %s", work.__name__, type(error).__name__)
    finally:
        close_old_connections()


def catch_up() -> None:
    """Write what an earlier version of Cato did not write yet for what it remembered."""
    from memory import services as memory

    memory.write_missing_words()


def sweep() -> None:
    """Everything that must happen even if nobody asked for it."""
    from cato_web.people.departures import finish_departures
    from chat import frames
    from chat import services as chat
    from chat.broadcast import publish_from_outside
    from chat.services.imports import sweep_imports
    from memory import services as memory

    for turn_id in chat.sweep():
        publish_from_outside(frames.turn(turn_id))
    chat.purge_deleted()
    chat.tidy_images()
    sweep_imports()
    finish_departures()
    memory.sweep()
