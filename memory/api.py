"""Memory's public verbs."""

from memory.documents.deletion import (
    cancel,
    cleanup_documents,
    delete_old_versions,
    delete_orphaned_files,
    forget_documents,
    forget_version,
)
from memory.documents.extraction_runs import read_documents, start_reading
from memory.documents.metadata import set_document_metadata
from memory.documents.publishing import is_blocked, publish_ready_versions, retry
from memory.documents.uploads import upload
from memory.exchanges.feedback import set_feedback
from memory.exchanges.forgetting import erase_forgotten, forget, receipt_for
from memory.exchanges.lifecycle import NewExchange, activate, deactivate, remember, remember_many, set_metadata
from memory.exchanges.moving import move_document, move_thread
from memory.exchanges.notes import add_note
from memory.exchanges.records import NewRecord, delete_records, query_records, upsert_records
from memory.index.generations import embedding_model_status
from memory.index.indexing import index_pending, memory_states, retry_failed
from memory.index.reconcile import index_missing_terms
from memory.maintenance import sweep
from memory.retrieval.recall_log import delete_recall_log, log_recall, recalled_for
from memory.retrieval.search import recall, search
from memory.retrieval.topics import get_relevant_context, related_threads, search_by_topic
from memory.spaces.deletion import delete_space_contents, remove_from_all_groups, space_receipt
from memory.spaces.groups import (
    add_to_group,
    create_group,
    get_group,
    is_empty,
    remove_from_group,
    remove_group,
    rename_group,
    set_group_role,
)
from memory.stats.counts import memory_counts

__all__ = [
    "NewExchange",
    "NewRecord",
    "activate",
    "add_note",
    "add_to_group",
    "cancel",
    "cleanup_documents",
    "create_group",
    "deactivate",
    "delete_old_versions",
    "delete_orphaned_files",
    "delete_recall_log",
    "delete_records",
    "delete_space_contents",
    "embedding_model_status",
    "erase_forgotten",
    "forget",
    "forget_documents",
    "forget_version",
    "get_group",
    "get_relevant_context",
    "index_missing_terms",
    "index_pending",
    "is_blocked",
    "is_empty",
    "log_recall",
    "memory_counts",
    "memory_states",
    "move_document",
    "move_thread",
    "publish_ready_versions",
    "query_records",
    "read_documents",
    "recall",
    "recalled_for",
    "receipt_for",
    "related_threads",
    "remember",
    "remember_many",
    "remove_from_all_groups",
    "remove_from_group",
    "remove_group",
    "rename_group",
    "retry",
    "retry_failed",
    "search",
    "search_by_topic",
    "set_document_metadata",
    "set_feedback",
    "set_group_role",
    "set_metadata",
    "space_receipt",
    "start_reading",
    "sweep",
    "upload",
    "upsert_records",
]
