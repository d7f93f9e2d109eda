"""Chat's public verbs."""

from chat.images import remove_unnamed_images, tidy_images
from chat.imports.jobs import remove_imports_of, remove_unnamed_imports, sweep_imports
from chat.threads.fork import fork
from chat.threads.lifecycle import (
    begin_thread,
    continue_thread,
    delete,
    purge_deleted,
    remove_threads_of,
    rename,
    set_archived,
    set_model,
    set_pinned,
    set_scope,
    take_back,
    take_out,
)
from chat.threads.memory_settings import forget_remembered, set_remembered
from chat.threads.moving import move
from chat.turns.branches import Switched, answer_again, choose, edit
from chat.turns.client_conversation import ClientConversation, PastExchange, ThreadOptions, submit_conversation
from chat.turns.posting import ApiOrigin, Asked, ask, open_thread, resume, retry, start_after, start_waiting
from chat.turns.stopping import stop, sweep, withdraw

__all__ = [
    "ApiOrigin",
    "Asked",
    "ClientConversation",
    "PastExchange",
    "Switched",
    "ThreadOptions",
    "answer_again",
    "ask",
    "begin_thread",
    "choose",
    "continue_thread",
    "delete",
    "edit",
    "forget_remembered",
    "fork",
    "move",
    "open_thread",
    "purge_deleted",
    "remove_imports_of",
    "remove_threads_of",
    "remove_unnamed_images",
    "remove_unnamed_imports",
    "rename",
    "resume",
    "retry",
    "set_archived",
    "set_model",
    "set_pinned",
    "set_remembered",
    "set_scope",
    "start_after",
    "start_waiting",
    "stop",
    "submit_conversation",
    "sweep",
    "sweep_imports",
    "take_back",
    "take_out",
    "tidy_images",
    "withdraw",
]
