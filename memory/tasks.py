"""The doors by which workers come in: they take nothing, decide nothing, may run twice or late."""

import threading

from celery import shared_task

from memory.administration import operations
from memory.documents import deletion, extraction_runs, publishing
from memory.exchanges import forgetting
from memory.index import indexing

_indexing = threading.Lock()
_indexing_wanted = threading.Event()


@shared_task(name="memory.tasks.index_pending")
def index_pending() -> None:
    # One thread of a worker at a time: what else it has to do must not wait for a long queue. Whoever comes meanwhile
    # leaves word, so that nothing that was queued since the last look is overlooked.
    _indexing_wanted.set()
    while _indexing_wanted.is_set() and _indexing.acquire(blocking=False):
        try:
            _indexing_wanted.clear()
            indexing.index_pending()
            publishing.publish_ready_versions()
        finally:
            _indexing.release()


@shared_task(name="memory.tasks.erase_forgotten")
def erase_forgotten() -> None:
    forgetting.erase_forgotten()


@shared_task(name="memory.tasks.read_documents")
def read_documents() -> None:
    extraction_runs.start_reading()


@shared_task(name="memory.tasks.run_operations")
def run_operations() -> None:
    operations.run_operations()


@shared_task(name="memory.tasks.tidy_documents")
def tidy_documents() -> None:
    deletion.cleanup_documents()
