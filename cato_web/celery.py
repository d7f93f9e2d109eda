"""The worker: runs the tasks of memory and chat on wake-up, and sweeps periodically for missed ones."""

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

_SWEEP_INTERVAL, _CLEANUP_INTERVAL = 3.0, 3600.0  # seconds
_stopping = threading.Event()


@worker_ready.connect
def start_sweep_thread(**kwargs: Any) -> None:
    """Start the sweep thread when the worker is ready."""
    threading.Thread(target=_sweep_loop, name="sweep", daemon=True).start()


@worker_shutting_down.connect
def stop_sweeping(**kwargs: Any) -> None:
    """Stop the sweep thread when the worker shuts down."""
    _stopping.set()


def _sweep_loop() -> None:
    _with_fresh_connections(run_startup_backfills)
    cleaned_at = None
    while not _stopping.wait(_SWEEP_INTERVAL):
        _with_fresh_connections(sweep)
        if cleaned_at is None or time.monotonic() - cleaned_at > _CLEANUP_INTERVAL:
            cleaned_at = time.monotonic()
            _with_fresh_connections(cleanup)


def _with_fresh_connections(work: Callable[[], None]) -> None:
    try:
        work()
    except DatabaseError as error:
        log.warning("%s could not run: %s", work.__name__, type(error).__name__)
    finally:
        close_old_connections()


def run_startup_backfills() -> None:
    """Add the lexical terms that an earlier version did not write."""
    from memory import api as memory

    memory.index_missing_terms()


def sweep() -> None:
    """Process due work that no wake-up announced."""
    from cato_web.accounts.deletion import run_account_deletions
    from chat import services as chat
    from chat.realtime import frames
    from chat.realtime.hub import publish_to_redis
    from memory import api as memory

    for turn_id in chat.interrupt_stale_answers():
        publish_to_redis(frames.turn(turn_id))
    chat.purge_deleted()
    chat.delete_forgotten_instructions()
    chat.delete_unsent_attachments()
    chat.resume_imports()
    run_account_deletions()
    memory.sweep()
    memory.release_unused_models()


def cleanup() -> None:
    """Apply retention rules and delete orphaned files."""
    from chat import services as chat
    from memory import api as memory

    memory.enqueue_retention_if_due()
    memory.delete_orphaned_originals()
    chat.delete_orphaned_attachments()
    chat.delete_orphaned_imports()
