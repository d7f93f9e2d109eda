"""Chat's public verbs."""

from chat.services.asking import Asked, ask, open_thread, resume, retry, start_waiting
from chat.services.branching import Switched, answer_again, choose, edit
from chat.services.forking import fork
from chat.services.images import remove_unnamed_images, tidy_images
from chat.services.moving import move
from chat.services.organising import (
    continue_thread,
    delete,
    purge_deleted,
    remove_threads_of,
    rename,
    set_archived,
    set_model,
    set_pinned,
    take_back,
    take_out,
)
from chat.services.remembering import forget_remembered, set_remembered
from chat.services.scoping import set_scope
from chat.services.stopping import stop, sweep, withdraw

__all__ = [
    "Asked",
    "Switched",
    "answer_again",
    "ask",
    "choose",
    "continue_thread",
    "delete",
    "edit",
    "forget_remembered",
    "fork",
    "move",
    "open_thread",
    "purge_deleted",
    "remove_threads_of",
    "remove_unnamed_images",
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
    "tidy_images",
    "withdraw",
]
