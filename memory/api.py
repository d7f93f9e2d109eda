"""The public interface of memory: every function and type that chat and cato_web may use."""

from memory import jobs, signals
from memory.administration.filters import ListFilterSet
from memory.administration.operations import enqueue_retention_if_due
from memory.administration.reveals import end_all_reveals, list_reveals
from memory.documents.attached import MAX_EXTRACTED_CHARACTERS, extract_page_text, extract_text
from memory.documents.deletion import (
    cleanup_documents,
    delete_old_versions,
    delete_orphaned_originals,
    forget_documents,
    forget_version,
)
from memory.documents.downloads import confine_download, stream_original
from memory.documents.extraction_runs import read_documents
from memory.documents.locations import locations_of
from memory.documents.metadata import set_document_metadata
from memory.documents.publishing import is_blocked, publish_ready_versions
from memory.documents.queries import (
    DocumentStatus,
    VersionStatus,
    active_documents,
    document_statuses,
    document_to_change,
    first_unread_upload,
    list_chunks,
    list_versions,
    readable_document,
)
from memory.documents.server_folders import ServerFile, list_server_folder, open_server_file, resolve_server_path
from memory.documents.uploads import normalise_name, upload_document
from memory.embeddings import configured_model, get_embedder, release_unused_models, remote_host
from memory.errors import (
    NOT_FOUND,
    STORE_DISABLED,
    CatoError,
    DocumentConflictError,
    EmbeddingError,
    EventsExpiredError,
    ExtractionError,
    InvalidFieldError,
    InvalidInputError,
    NotFoundError,
    RateLimit,
    RateLimitedError,
    RecordConflictError,
    StatementConflictError,
    VectorStoreDisabledError,
    VectorStoreUnavailableError,
)
from memory.events import EventPage, delete_old_events, feed_range, list_events
from memory.exchanges.erasure import ensure_erased, erase_forgotten, erased_fields
from memory.exchanges.feedback import ExchangeFeedback, feedback_for_exchanges, set_feedback
from memory.exchanges.forgetting import forget, forgotten_ids
from memory.exchanges.lifecycle import NewExchange, activate, deactivate, remember, remember_many, set_metadata
from memory.exchanges.moving import is_being_read, move_document, move_thread
from memory.exchanges.notes import add_note
from memory.exchanges.receipts import count_vectors, next_erasure_attempt, receipt_for
from memory.exchanges.records import NewRecord, delete_records, upsert_records
from memory.exchanges.states import MemoryState, memory_states, states_of
from memory.exchanges.supersessions import CONFIRMED, REJECTED, decisions_of
from memory.exchanges.supersessions import decide as decide_supersession
from memory.filters import Filter, Phrase, all_of, parse_filter
from memory.index.chroma import connect_vector_store, ping_vector_store
from memory.index.embedding import embed, embedding_model
from memory.index.embedding_policy import embedding_policy_of, ensure_embeddable, set_embedding_policy
from memory.index.generations import (
    EmbeddingModelStatus,
    ReindexProgress,
    activate_built_generation,
    active_generation_or_none,
    drop_retired_generations,
    embedding_model_status,
    is_reindexing,
    reindex_progress,
    start_reindex,
    start_rollback,
)
from memory.index.indexing import index_pending, retry_failed
from memory.index.purge import purge_all
from memory.index.reconcile import (
    Drift,
    ProgressCallback,
    drop_orphan_collections,
    index_missing_terms,
    measure_drift,
    no_progress,
    reconcile,
)
from memory.index.store import request_file_cleanup
from memory.jobs import Lease, LeaseLostError, wake_worker_on_commit
from memory.knowledge import decisions as knowledge_decisions
from memory.knowledge.acceptance import SourceText, unsupported_part
from memory.knowledge.listing import (
    StatementFacts,
    StatementFilter,
    authors_of_statements,
    conflicts_of,
    count_by_topic,
    count_to_review,
    load_statements,
    sources_of,
    statement_facts,
    statement_ids,
)
from memory.knowledge.nearest import related_statements
from memory.knowledge.restoring import (
    restore_confirmation,
    restore_conflict,
    restore_state,
    restore_successor,
)
from memory.knowledge.sources import lock_with_statements, source_ids, statements_supported_by
from memory.knowledge.staleness import unconfirmed_since
from memory.knowledge.statements import (
    MAX_STATEMENT_LENGTH,
    NewStatement,
    NewSupport,
    add_statements,
    add_support,
    are_unchanged,
    mark_as_read,
    readable_statements,
    topics_of,
)
from memory.knowledge.unread import is_due as has_unread_exchanges
from memory.knowledge.unread import next_batch, unread_exchanges
from memory.lexical.marks import TextPart, marked_excerpt
from memory.lexical.suggestions import suggest_query
from memory.maintenance import SWEEP_STEPS, backfill, count_queued, count_unembedded_imports, embed_queued
from memory.models import (
    CachedEmbedding,
    Chunk,
    Document,
    DocumentVersion,
    EmbeddingJob,
    Evaluation,
    Event,
    Exchange,
    Feedback,
    IndexGeneration,
    Job,
    Membership,
    MembershipChange,
    Operation,
    RecallLogEntry,
    Record,
    Reveal,
    Space,
    SpaceKnowledge,
    Statement,
    Supersession,
    Support,
)
from memory.retrieval import get_strategy, strategy_names
from memory.retrieval.attached_context import build_attached_context, choose_passages
from memory.retrieval.by_date import BY_DATE, ids_by_date, listed_hits
from memory.retrieval.corrections import SUPERSESSION
from memory.retrieval.dates import DateRange, day_called, parse_date_range
from memory.retrieval.explanations import SIMILAR
from memory.retrieval.instruction_detection import DetectedInstruction, are_instructions
from memory.retrieval.neutralising import neutralise, neutralise_line
from memory.retrieval.passages import group_adjacent
from memory.retrieval.prompt_context import build_prompt_context, estimate_tokens, quote_passages
from memory.retrieval.recall import recall
from memory.retrieval.recall_filter import NO_FILTER, RecallFilter, build_recall_filter, describe_recall_filter
from memory.retrieval.recall_log import (
    RecalledPassage,
    RecallRate,
    delete_recall_log,
    extend_recall_log,
    log_recall,
    logged_hits,
    recall_rate,
    recalled_for,
)
from memory.retrieval.record_search import query_records
from memory.retrieval.search import MAX_RESULTS, SearchResults, ensure_enabled, is_relevant, search
from memory.retrieval.surroundings import surroundings
from memory.retrieval.topics import get_relevant_context, related_threads, search_by_topic
from memory.retrieval.tuning.calibration import (
    CalibrationResult,
    ThresholdStats,
    current_threshold,
    fit_threshold,
    reset_threshold,
    save_threshold,
)
from memory.retrieval.tuning.evaluation import WITHOUT_RAREST_WORDS, Rephraser, evaluate
from memory.retrieval.tuning.sampling import MAX_SAMPLE
from memory.retrieval.types import ExchangeView, Hit
from memory.retrieval.web_context import WebPassage, build_web_context
from memory.retrieval.what_happened import has_happened
from memory.spaces.access import (
    SpaceIds,
    admin_visible_space_ids,
    audience_space_ids,
    audience_spaces,
    audience_text,
    audience_texts,
    count_readers,
    ensure_open,
    get_space,
    in_spaces,
    list_open_spaces,
    list_readable_spaces,
    managed_space_ids,
    manages_space,
    personal_space,
    preferred_space_id,
    readable_pairs,
    readable_space_ids,
    readable_spaces,
    readers,
    settable_knowledge,
    space_by_name,
    space_ids_shared_by_all_readers,
    team_space,
)
from memory.spaces.data_policy import DataPolicy, may_receive, permitted_spaces, personal_among, validate_places
from memory.spaces.deletion import delete_space_contents, remove_from_all_groups, space_receipt
from memory.spaces.groups import (
    MAX_DESCRIPTION_LENGTH,
    add_to_group,
    archive_project,
    change_project,
    create_group,
    create_project,
    get_group,
    is_group_empty,
    is_group_erased,
    remove_from_group,
    remove_group,
    rename_group,
    reopen_project,
    set_group_role,
    synchronise_memberships,
)
from memory.spaces.newest import newest_in_spaces
from memory.stats.counts import MemoryCounts, count_findable, count_unindexed, memory_counts
from memory.stats.disk import disk_use, index_location
from memory.stats.history import (
    DAY,
    WEEK,
    DateField,
    TimeRange,
    count_by_owner,
    count_forgotten_since,
    first_exchange_at,
    growth_counts,
    period_ends,
    recall_counts,
    recall_rates,
)
from memory.text import (
    clean_json,
    clean_name,
    clean_text,
    content_hash,
    excerpt,
    has_visible_text,
    parse_number,
    parse_uuid,
    strip_inline_markdown,
    without_bidi_controls,
    without_citations,
)
from memory.utils.batching import batched, iterate_by_pk
from memory.utils.formatting import (
    day_of_this_year,
    day_text,
    format_date,
    format_datetime,
    format_list,
    format_moment,
    format_number,
    format_percent,
    format_remaining,
    format_similarity,
    source_label,
)
from memory.utils.lookups import contains
from memory.utils.rate_limits import (
    count_api_request,
    count_message,
    count_search,
    count_web_search,
    is_within_limit,
)
from memory.utils.remaining_time import estimate_remaining
from memory.utils.stored_files import delete_after_commit, delete_file_on_rollback, delete_orphaned_files
from memory.utils.streaming import iterate_in_thread
from memory.utils.widgets import DATE_INPUT, LongSelect
from memory.utils.write_pauses import pause_after_writing
from memory.views.administration.shared import space_label
from memory.views.document_rows import DocumentProgress, DocumentRow, UploadChip, document_progress, document_row
from memory.views.documents import upload_limits
from memory.views.forms import (
    format_metadata,
    listed_space,
    parse_metadata,
    parse_passage,
    parse_place,
    parse_space,
    space_choices,
)
from memory.views.http import PageRequest, admin_required
from memory.views.links import document_url, exchange_url, passage_url
from memory.views.paging import LongPaginator
