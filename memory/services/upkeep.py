"""What must happen even if every nudge was lost; any process may call it, as often as it likes."""

from __future__ import annotations

from memory.generations import switch_generation
from memory.services.forgetting import erase_forgotten
from memory.services.indexing import index_pending


def sweep() -> None:
    """Embed what is due, erase what was forgotten, and switch to a new index that is complete."""
    index_pending()
    erase_forgotten()
    switch_generation()
