"""Chat's public verbs."""

from chat.services.asking import Asked, ask, open_thread, resume, retry, start_waiting
from chat.services.branching import Switched, answer_again, choose, edit
from chat.services.organising import (
    continue_thread,
    delete,
    purge_deleted,
    rename,
    set_archived,
    set_model,
    set_pinned,
    take_back,
    take_out,
)
from chat.services.remembering import set_remembered
from chat.services.scoping import set_scope
from chat.services.stopping import stop, sweep

__all__ = [
    "Asked",
    "Switched",
    "answer_again",
    "ask",
    "choose",
    "continue_thread",
    "delete",
    "edit",
    "open_thread",
    "purge_deleted",
    "rename",
    "resume",
    "retry",
    "set_archived",
    "set_model",
    "set_pinned",
    "set_remembered",
    "set_scope",
    "start_waiting",
    "stop",
    "sweep",
    "take_back",
    "take_out",
]
