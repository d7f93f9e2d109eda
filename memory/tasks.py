"""Celery tasks: they take no arguments, and may run twice or late."""

import threading

from celery import shared_task

from memory.administration import operations
from memory.documents import deletion, extraction_runs, publishing
from memory.exchanges import erasure
from memory.index import indexing

_indexing = threading.Lock()
_indexing_requested = threading.Event()


@shared_task(name="memory.tasks.index_pending")
def index_pending() -> None:
    """Embed pending exchanges and publish ready document versions."""
    # One thread of a worker at a time, so that a long queue does not occupy all of them. A task that arrives meanwhile
    # sets the event, and the loop runs again.
    _indexing_requested.set()
    while _indexing_requested.is_set() and _indexing.acquire(blocking=False):
        try:
            _indexing_requested.clear()
            indexing.index_pending()
            publishing.publish_ready_versions()
        finally:
            _indexing.release()


@shared_task(name="memory.tasks.erase_forgotten")
def erase_forgotten() -> None:
    """Erase forgotten exchanges."""
    erasure.erase_forgotten()


@shared_task(name="memory.tasks.read_documents")
def read_documents() -> None:
    """Extract received documents."""
    extraction_runs.start_reading()


@shared_task(name="memory.tasks.run_operations")
def run_operations() -> None:
    """Run due operations."""
    operations.run_operations()


@shared_task(name="memory.tasks.cleanup_documents")
def cleanup_documents() -> None:
    """Delete what deleted documents leave."""
    deletion.cleanup_documents()
