"""Extract the text of uploaded files in a child process, and split it into chunks."""

from __future__ import annotations

import logging
import uuid
from concurrent.futures import ThreadPoolExecutor

from django.conf import settings
from django.db import DatabaseError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from memory import jobs
from memory.documents import extraction
from memory.documents.chunks import write_chunks
from memory.documents.extraction import ExtractedText, ExtractionCancelledError, ExtractionLimits
from memory.errors import ExtractionError
from memory.events import record_events
from memory.jobs import Lease, LeaseLostError
from memory.models import Document, DocumentVersion, Event
from memory.utils.fairness import Turns
from memory.utils.formatting import error_text
from memory.utils.stored_files import local_copy

log = logging.getLogger(__name__)

Stage = DocumentVersion.Stage
# Files that a worker extracts concurrently, each in its own child process.
_READERS = 2
# Bytes. A file of up to this size does not delay others for long.
_SMALL = 200_000
# Number of waiting files that are considered when choosing the next one.
_MAX_WAITING = 1000
_turns: Turns[uuid.UUID] = Turns()
_readers = ThreadPoolExecutor(_READERS, thread_name_prefix="document-reader")


def read_documents(limit: int | None = None) -> int:
    """Extract and split due files, at most `limit`; return how many got their chunks.

    People take turns, and a person's small files come first. Errors are stored in the version's row and not raised.
    """
    done = tried = 0
    while (limit is None or tried < limit) and (claimed := _claim_next()):
        tried += 1
        done += _ExtractionRun(claimed).do()
    return done


def start_reading() -> None:
    """Start extraction of due files in this process's threads and return at once."""
    for _reader in range(_READERS):
        _readers.submit(_read_in_thread)


def _read_in_thread() -> None:
    try:
        read_documents()
    except DatabaseError as error:
        log.warning("documents could not be read: %s", type(error).__name__)
    finally:
        connection.close()


def _claim_next() -> DocumentVersion | None:
    """Claim a file of the person served longest ago; of a person with a running extraction only a small one.

    A slow file, or many of them, leave a thread free for everybody's small files.
    """
    now = timezone.now()
    busy = set(_unextracted_versions().filter(locked_until__gt=now).values_list("uploaded_by_id", flat=True))
    waiting = jobs.due(_unextracted_versions()).order_by("due_at").values_list("uploaded_by_id", flat=True)
    for person_id in _turns.in_order(waiting[:_MAX_WAITING]):
        files = _unextracted_versions().filter(uploaded_by_id=person_id).order_by("size", "due_at", "id")
        if person_id in busy:
            files = files.filter(size__lte=_SMALL)
        if claimed := jobs.claim(files, 1):
            _turns.note(person_id)
            return claimed[0]
    return None


def has_due_extraction() -> bool:
    """Return True if a file waits for extraction."""
    return jobs.has_due(_unextracted_versions())


def _unextracted_versions() -> QuerySet[DocumentVersion]:
    versions = DocumentVersion.objects.filter(stage__in=[Stage.RECEIVED, Stage.READING, Stage.CHUNKING])
    return versions.select_related("document__space", "document__live_version")


class _ExtractionRun:
    """The extraction of one version by this worker, while it holds the lease."""

    def __init__(self, version: DocumentVersion) -> None:
        self._version = version
        self._lease = Lease(version)

    def do(self) -> bool:
        """Return True if the chunks are written, False if the file has no text or the attempt ended early."""
        try:
            return self._do()
        except (LeaseLostError, ExtractionCancelledError):
            return False
        except DatabaseError:
            raise
        except Exception as error:
            # Any error, such as a full disk: the row says so, and another attempt begins again.
            log.exception("a document could not be read")
            reason = _("Something went wrong in Cato itself (%(error)s). See the worker log.")
            if jobs.release_for_retry(self._version, reason % {"error": type(error).__name__}, counts=True):
                self._record_failure()
            return False

    def _do(self) -> bool:
        try:
            self._begin()
            extracted = self._read()
            self._lease.update(stage=Stage.CHUNKING)
            write_chunks(self._lease, extracted)
        except ExtractionError as error:
            reason = error_text(error)
            log.info("a document could not be read: %s", reason)
            with transaction.atomic():
                self._lease.fail(reason)
                self._record_failure()
            return False
        self._lease.finish(stage=Stage.EMBEDDING, failures=0)
        jobs.wake_worker_on_commit("index_pending")
        return True

    def _begin(self) -> None:
        """Count the attempt as a failure until it succeeds: a file can kill the worker, or take longer than a lease."""
        if self._version.failures >= jobs.MAX_FAILURES:
            raise ExtractionError(gettext_noop("All attempts failed. See the worker log."))
        self._lease.update(stage=Stage.READING, failures=self._version.failures + 1)

    def _record_failure(self) -> None:
        failed = DocumentVersion.objects.filter(pk=self._version.pk, state=DocumentVersion.State.FAILED)
        if failed.update(stage=Stage.FAILED):
            record_events(Event.Kind.DOCUMENT_FAILED, Document.objects.filter(pk=self._version.document_id))

    def _read(self) -> ExtractedText:
        try:
            with self._version.original.open("rb") as original, local_copy(original.chunks()) as path:
                return extraction.read(
                    path,
                    name=self._version.document.name,
                    limits=extraction_limits(),
                    stop=lambda: not self._lease.is_held(),
                )
        except FileNotFoundError as error:
            raise ExtractionError(
                gettext_noop("The original is not in the storage any more. Upload it again.")
            ) from error


def extraction_limits() -> ExtractionLimits:
    """Return the configured limits of one extraction."""
    conf = settings.CATO.documents
    return ExtractionLimits(
        memory_mb=conf.reader_memory_mb,
        processor_seconds=conf.reader_processor_seconds,
        wall_seconds=conf.reader_seconds,
        max_characters=conf.max_characters,
    )
