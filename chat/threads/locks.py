"""Row locks, always taken in the order person, thread, and the checks that need them."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib.auth import get_user_model

from chat.errors import ThreadBusyError
from chat.llm.choices import any_policy, any_space_model
from chat.models import Thread
from chat.usage.limits import any_limit


def lock_person(person_id: uuid.UUID) -> Any:
    """Lock the person's row until the transaction ends, so that limits per person are counted correctly.

    It is returned with `has_usage_limits`, for `ensure_within_limits`, and with `has_data_policies` and `has_space_models`,
    for `chat.llm.choices`.
    """
    people = get_user_model().objects.select_for_update(no_key=True)
    return people.annotate(
        has_usage_limits=any_limit(), has_data_policies=any_policy(), has_space_models=any_space_model()
    ).get(id=person_id)


def lock_thread(thread_id: uuid.UUID) -> Thread:
    """Lock the thread's row until the transaction ends; return it with its space."""
    return Thread.objects.select_for_update(of=("self",)).select_related("space").get(id=thread_id)


def ensure_idle(thread: Thread) -> None:
    """Raise ThreadBusyError while an answer is running or queued in the thread."""
    if thread.turns.unfinished().exists():
        raise ThreadBusyError


def ensure_not_answering(thread: Thread) -> None:
    """Raise ThreadBusyError while an answer is running in the thread; queued messages do not count."""
    if thread.is_answering():
        raise ThreadBusyError
