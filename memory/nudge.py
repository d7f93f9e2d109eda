"""Tells the workers that there is something to do; the rows already say what, so a lost nudge loses nothing."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import transaction

log = logging.getLogger(__name__)


def after_commit(task_name: str, *, module: str = "memory.tasks") -> None:
    """Send the task `task_name` of `module` once the current transaction is committed."""
    transaction.on_commit(lambda: _send(f"{module}.{task_name}"))


def _send(task_name: str) -> None:
    if settings.REDIS_URL is None:
        return
    from celery import current_app
    from kombu.exceptions import OperationalError

    try:
        current_app.send_task(task_name)
    except OperationalError as error:
        log.warning("no worker could be told to %s (%s); the sweep will find it", task_name, type(error).__name__)
