"""Memory's public verbs."""

from memory.generations import models_in_use
from memory.services.documents.describing import describe
from memory.services.documents.reading import read_documents, start_reading
from memory.services.documents.receiving import receive
from memory.services.documents.removing import (
    cancel,
    forget_documents,
    forget_version,
    keep_last,
    remove_unnamed_files,
    tidy_documents,
)
from memory.services.documents.serving import is_waiting, retry, serve_complete
from memory.services.emptying import forget_space, leave_groups, receipt_of_space
from memory.services.exchanges import NewExchange, annotate, hide, remember, remember_many, show
from memory.services.figures import figures
from memory.services.forgetting import erase_forgotten, forget, receipt_for
from memory.services.groups import (
    add_to_group,
    group_for,
    is_empty,
    make_group,
    remove_group,
    rename_group,
    set_group_role,
    take_out_of_group,
)
from memory.services.indexing import index_pending, memory_states, retry_failed
from memory.services.moving import move_document, move_thread
from memory.services.notes import keep_text
from memory.services.opinions import express
from memory.services.recalls import drop_recalls, note_recall, recalled_for
from memory.services.reconciling import write_missing_words
from memory.services.records import NewRecord, delete_records, query_records, upsert_records
from memory.services.search import find, recall
from memory.services.topics import get_relevant_context, related_threads, search_by_topic
from memory.services.upkeep import sweep

__all__ = [
    "NewExchange",
    "NewRecord",
    "add_to_group",
    "annotate",
    "cancel",
    "delete_records",
    "describe",
    "drop_recalls",
    "erase_forgotten",
    "express",
    "figures",
    "find",
    "forget",
    "forget_documents",
    "forget_space",
    "forget_version",
    "get_relevant_context",
    "group_for",
    "hide",
    "index_pending",
    "is_empty",
    "is_waiting",
    "keep_last",
    "keep_text",
    "leave_groups",
    "make_group",
    "memory_states",
    "models_in_use",
    "move_document",
    "move_thread",
    "note_recall",
    "query_records",
    "read_documents",
    "recall",
    "recalled_for",
    "receipt_for",
    "receipt_of_space",
    "receive",
    "related_threads",
    "remember",
    "remember_many",
    "remove_group",
    "remove_unnamed_files",
    "rename_group",
    "retry",
    "retry_failed",
    "search_by_topic",
    "serve_complete",
    "set_group_role",
    "show",
    "start_reading",
    "sweep",
    "take_out_of_group",
    "tidy_documents",
    "upsert_records",
    "write_missing_words",
]
