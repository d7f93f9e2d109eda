"""The worker: runs memory's tasks when nudged, and sweeps on a timer for what no nudge told of."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutting_down
from django.db import DatabaseError, close_old_connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")

log = logging.getLogger(__name__)

app = Celery("cato")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory"])

_SWEEP_EVERY = 3.0
_ending = threading.Event()


@worker_ready.connect
def begin_sweeping(**kwargs: Any) -> None:
    threading.Thread(target=_sweep_for_ever, name="sweep", daemon=True).start()


@worker_shutting_down.connect
def stop_sweeping(**kwargs: Any) -> None:
    _ending.set()


def _sweep_for_ever() -> None:
    while not _ending.wait(_SWEEP_EVERY):
        try:
            sweep()
        except DatabaseError as error:
            log.warning("the sweep could not run: %s", type(error).__name__)
        finally:
            close_old_connections()


def sweep() -> None:
    """Everything that must happen even if nobody asked for it."""
    from chat import frames
    from chat import services as chat
    from chat.broadcast import publish_from_outside
    from memory import services as memory

    for turn_id in chat.sweep():
        publish_from_outside(frames.turn(turn_id))
    memory.sweep()
