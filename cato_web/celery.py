"""The worker: runs the tasks of memory, chat, accounts and webhooks on wake-up, and sweeps periodically for missed ones."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any

from celery import Celery
from celery.signals import worker_ready, worker_shutting_down
from django.db import DatabaseError, close_old_connections

from cato_web.database_activity import DatabaseActivity

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "cato_web.settings")
# Django's checks import all pages and the API: 15 MB of each worker that it does not need.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

log = logging.getLogger(__name__)

app = Celery("cato")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory", "chat", "cato_web.accounts", "cato_web.webhooks"])

# Seconds. A sweep has forty statements; every five seconds, they are half of the processor time that Cato uses at rest.
_SWEEP_INTERVAL, _QUIET_SWEEP_INTERVAL, _CLEANUP_INTERVAL = 5.0, 30.0, 3600.0
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
    is_backfilled = _run_all(run_startup_backfills)
    activity = DatabaseActivity()
    swept_at = cleaned_at = -math.inf
    while not _stopping.wait(_SWEEP_INTERVAL):
        if activity.is_recent() or time.monotonic() - swept_at >= _QUIET_SWEEP_INTERVAL:
            swept_at = time.monotonic()
            is_backfilled = is_backfilled or _run_all(run_startup_backfills)
            sweep()
        if time.monotonic() - cleaned_at > _CLEANUP_INTERVAL:
            cleaned_at = time.monotonic()
            cleanup()


def _run_all(*steps: Callable[[], object]) -> bool:
    """Run each step, whether or not the ones before it succeeded; return True if all did."""
    from memory.api import CatoError

    succeeded = 0
    for step in steps:
        try:
            step()
            succeeded += 1
        except DatabaseError as error:
            log.warning("%s could not run: %s", step.__name__, type(error).__name__)
            close_old_connections()
        except CatoError as error:
            log.warning("%s could not run: %s", step.__name__, error)
        except Exception:
            # Any error: one failing step must end neither the other steps nor the sweep thread.
            log.exception("%s failed", step.__name__)
    close_old_connections()
    return succeeded == len(steps)


def run_startup_backfills() -> None:
    """Add the lexical terms that an earlier version did not write."""
    from memory import api as memory

    memory.index_missing_terms()


def sweep() -> None:
    """Process due work that no wake-up announced."""
    from cato_web.accounts.deletion import run_account_deletions
    from cato_web.accounts.export import jobs as exports
    from cato_web.webhooks.queue import queue_deliveries
    from chat import services as chat
    from memory import api as memory

    _run_all(
        _interrupt_stale_answers,
        chat.count_ended_answers,
        chat.purge_deleted,
        chat.delete_forgotten_instructions,
        chat.delete_unsent_attachments,
        chat.resume_imports,
        chat.resume_extraction,
        chat.resume_digests,
        exports.resume_exports,
        exports.check_after_forgetting,
        run_account_deletions,
        queue_deliveries,
        *memory.SWEEP_STEPS,
        memory.release_unused_models,
    )


def _interrupt_stale_answers() -> None:
    from chat import services as chat
    from chat.realtime import frames
    from chat.realtime.hub import publish_to_redis

    for turn_id in chat.interrupt_stale_answers():
        publish_to_redis(frames.turn(turn_id))


def cleanup() -> None:
    """Apply retention rules, and delete old exports, events and keys, what a dead process left, and unused grants."""
    from cato_web.accounts.export import jobs as exports
    from cato_web.idempotency import delete_old_keys
    from cato_web.oauth import grants
    from chat import services as chat
    from memory import api as memory

    _run_all(
        delete_old_keys,
        grants.delete_unused,
        memory.enqueue_retention_if_due,
        memory.delete_old_events,
        memory.delete_orphaned_originals,
        chat.delete_forgotten_attachments,
        chat.delete_orphaned_attachments,
        chat.delete_orphaned_imports,
        exports.delete_old_exports,
        exports.delete_orphaned_exports,
    )
