"""Chat's public verbs."""

from chat.services.asking import Asked, ask, open_thread, resume, retry, start_waiting
from chat.services.branching import Switched, answer_again, choose, edit
from chat.services.remembering import set_remembered
from chat.services.scoping import set_scope
from chat.services.stopping import stop, sweep

__all__ = [
    "Asked",
    "Switched",
    "answer_again",
    "ask",
    "choose",
    "edit",
    "open_thread",
    "resume",
    "retry",
    "set_remembered",
    "set_scope",
    "start_waiting",
    "stop",
    "sweep",
]
