"""Whether a thread is remembered, and forgetting what is."""

from __future__ import annotations

from chat.models import Thread


def set_remembered(thread: Thread, is_remembered: bool) -> None:
    """From now on remember this thread's exchanges, or do not; what was remembered before stays as it is."""
    Thread.objects.filter(id=thread.id).update(is_remembered=is_remembered)
