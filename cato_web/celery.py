"""The worker: runs the tasks of memory and chat when nudged, and sweeps on a timer for what no nudge told of."""

from __future__ import annotations

import logging
import os
import threading
import time
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

# Seconds.
_SWEEP_EVERY, _TIDY_EVERY = 3.0, 3600.0
_ending = threading.Event()


@worker_ready.connect
def start_sweep_thread(**kwargs: Any) -> None:
    threading.Thread(target=_sweep_loop, name="sweep", daemon=True).start()


@worker_shutting_down.connect
def stop_sweeping(**kwargs: Any) -> None:
    _ending.set()


def _sweep_loop() -> None:
    _with_fresh_connections(run_startup_backfills)
    tidied_at = None
    while not _ending.wait(_SWEEP_EVERY):
        _with_fresh_connections(sweep)
        if tidied_at is None or time.monotonic() - tidied_at > _TIDY_EVERY:
            tidied_at = time.monotonic()
            _with_fresh_connections(cleanup)


def _with_fresh_connections(work: Callable[[], None]) -> None:
    try:
        work()
    except DatabaseError as error:
        log.warning("%s could not run: %s", work.__name__, type(error).__name__)
    finally:
        close_old_connections()


def run_startup_backfills() -> None:
    """Write what an earlier version of Cato did not write yet for what it remembered."""
    from memory import api as memory

    memory.index_missing_terms()


def sweep() -> None:
    """Everything that must happen even if nobody asked for it."""
    from cato_web.accounts.deletion import run_account_deletions
    from chat import services as chat
    from chat.realtime import frames
    from chat.realtime.hub import publish_to_redis
    from memory import api as memory

    for turn_id in chat.interrupt_stale_answers():
        publish_to_redis(frames.turn(turn_id))
    chat.purge_deleted()
    chat.delete_unsent_images()
    chat.resume_imports()
    run_account_deletions()
    memory.sweep()


def cleanup() -> None:
    """What needs no haste: files that a crash may have left, and what is older than it may be."""
    from chat import services as chat
    from memory import api as memory
    from memory.administration import operations

    operations.enqueue_retention_if_due()
    memory.delete_orphaned_files()
    chat.delete_orphaned_images()
    chat.delete_orphaned_imports()
