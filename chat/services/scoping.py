"""What a thread's recall is confined to."""

from __future__ import annotations

from chat.models import Thread
from memory.services.documents.scope import Scope


def set_scope(thread: Thread, scope: Scope) -> None:
    """Recall for this thread from what `scope` says alone, from the next message on."""
    thread.scope = {} if scope.is_everything else scope.as_json()
    thread.save(update_fields=["scope"])
