"""Memory's public verbs."""

from memory.generations import Models, build_generation, models_in_use, switch_generation
from memory.services.exchanges import remember, revise
from memory.services.figures import Figures, figures
from memory.services.forgetting import erase_forgotten, forget
from memory.services.indexing import index_pending, memory_states, retry_failed
from memory.services.moving import move_thread
from memory.services.notes import keep_text
from memory.services.recalls import note_recall, recalled_for
from memory.services.search import find, recall
from memory.services.upkeep import sweep

__all__ = [
    "Figures",
    "Models",
    "build_generation",
    "erase_forgotten",
    "figures",
    "find",
    "forget",
    "index_pending",
    "keep_text",
    "memory_states",
    "models_in_use",
    "move_thread",
    "note_recall",
    "recall",
    "recalled_for",
    "remember",
    "retry_failed",
    "revise",
    "sweep",
    "switch_generation",
]
