"""Memory's public verbs."""

from memory.documents.deletion import (
    cancel,
    forget_documents,
    forget_version,
    keep_last,
    remove_unnamed_files,
    tidy_documents,
)
from memory.documents.extraction_runs import read_documents, start_reading
from memory.documents.metadata import describe
from memory.documents.publishing import is_waiting, retry, serve_complete
from memory.documents.uploads import receive
from memory.exchanges.feedback import express
from memory.exchanges.forgetting import erase_forgotten, forget, receipt_for
from memory.exchanges.lifecycle import NewExchange, annotate, hide, remember, remember_many, show
from memory.exchanges.moving import move_document, move_thread
from memory.exchanges.notes import keep_text
from memory.exchanges.records import NewRecord, delete_records, query_records, upsert_records
from memory.index.generations import models_in_use
from memory.index.indexing import index_pending, memory_states, retry_failed
from memory.index.reconcile import write_missing_words
from memory.maintenance import sweep
from memory.retrieval.recall_log import drop_recalls, note_recall, recalled_for
from memory.retrieval.search import find, recall
from memory.retrieval.topics import get_relevant_context, related_threads, search_by_topic
from memory.spaces.deletion import forget_space, leave_groups, receipt_of_space
from memory.spaces.groups import (
    add_to_group,
    group_for,
    is_empty,
    make_group,
    remove_group,
    rename_group,
    set_group_role,
    take_out_of_group,
)
from memory.stats.counts import figures

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
