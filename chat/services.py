"""The services of chat, for views, tasks and the APIs."""

from chat.attachments import (
    delete_forgotten_attachments,
    delete_orphaned_attachments,
    delete_unsent_attachments,
    delete_unsent_attachments_of,
)
from chat.digests.switching import delete_digest_of
from chat.digests.worker import resume_digests
from chat.imports.jobs import delete_imports_of, delete_orphaned_imports, resume_imports
from chat.instructions.editing import delete_forgotten as delete_forgotten_instructions
from chat.instructions.editing import delete_of_person as delete_instructions_of
from chat.knowledge.switching import resume_extraction, set_knowledge
from chat.threads.fork import fork_thread
from chat.threads.lifecycle import (
    continue_thread,
    create_thread,
    delete_last_turns,
    delete_thread,
    delete_threads_in_space,
    last_turns,
    move_thread,
    purge_deleted,
    rename_thread,
    restore_thread,
    set_model,
    set_recall_filter,
)
from chat.threads.memory_settings import (
    forget_exchange,
    forget_statement,
    forget_thread_exchanges,
    set_memory_enabled,
)
from chat.threads.reader_marks import set_archived, set_muted, set_pinned
from chat.tools.uses import rename_in_tool_uses
from chat.turns.additions import keep_additions
from chat.turns.branches import BranchSwitch, edit_message, regenerate, switch_branch
from chat.turns.client_conversation import ForkPoint, ThreadOptions, submit_conversation
from chat.turns.client_matching import ClientConversation, PastExchange
from chat.turns.forgetting import (
    delete_receipts_of,
    find_scope,
    forget_everywhere,
    receipts_of,
    turn_to_forget,
)
from chat.turns.placing import ApiOrigin
from chat.turns.posting import PostedTurn, create_thread_with_message, post_message
from chat.turns.queue import move_up, start_all_queued, start_queued_after_answer, withdraw_message, withdraw_to_edit
from chat.turns.restarting import resume_turn, retry_turn
from chat.turns.stopping import interrupt_stale_answers, request_stop
from chat.usage.counting import count_ended_answers
from chat.usage.counting import remove_person as remove_person_from_usage
from chat.usage.limits import delete_limits_of
