"""Reading what was received: the text out of the file, in a process of its own, then cut into pieces."""

from __future__ import annotations

import logging
import tempfile
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext_noop

from memory import jobs
from memory.documents import extraction
from memory.documents.chunks import write_chunks
from memory.documents.extraction import ExtractedText, ExtractionCancelledError, ExtractionLimits
from memory.errors import ExtractionError
from memory.jobs import Lease, LeaseLostError
from memory.models import DocumentVersion
from memory.utils.fairness import Turns
from memory.utils.formatting import error_text

log = logging.getLogger(__name__)

Stage = DocumentVersion.Stage
# Files read at once by a process, each in a child process of its own.
_READERS = 2
# Bytes; a file of this size does not keep others waiting for long.
_SMALL = 200_000
# So many files in a row are looked at for who waits.
_MOST_WAITING = 1000
_turns: Turns[uuid.UUID] = Turns()
_readers = ThreadPoolExecutor(_READERS, thread_name_prefix="document-reader")


def read_documents(limit: int | None = None) -> int:
    """Read and cut what is due, one file after the other, at most `limit`; returns how many got their pieces.

    People take turns, and of one person's files the small ones come first. What cannot be read is said on its row;
    nothing is raised for it.
    """
    done = tried = 0
    while (limit is None or tried < limit) and (claimed := _claim_next()):
        tried += 1
        done += _ExtractionRun(claimed).do()
    return done


def start_reading() -> None:
    """Have the reader threads of this process read what is due, and return at once."""
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
    """Claim a file of whoever was served longest ago; of who has one being read only a small one.

    So a file that takes long, or many of them, leave a reader free for the small files of everybody.
    """
    now = timezone.now()
    busy = set(_unread().filter(locked_until__gt=now).values_list("uploaded_by_id", flat=True))
    waiting = jobs.due(_unread()).order_by("due_at").values_list("uploaded_by_id", flat=True)
    for person_id in _turns.in_order(waiting[:_MOST_WAITING]):
        files = _unread().filter(uploaded_by_id=person_id).order_by("size", "due_at", "id")
        if person_id in busy:
            files = files.filter(size__lte=_SMALL)
        if claimed := jobs.claim(files, 1):
            _turns.note(person_id)
            return claimed[0]
    return None


def has_due_extraction() -> bool:
    """Whether a file waits for its reader."""
    return jobs.has_due(_unread())


def _unread() -> QuerySet[DocumentVersion]:
    versions = DocumentVersion.objects.filter(stage__in=[Stage.RECEIVED, Stage.READING, Stage.CHUNKING])
    return versions.select_related("document__space", "document__live_version")


class _ExtractionRun:
    """One version while this worker reads it, as long as it holds the lease."""

    def __init__(self, version: DocumentVersion) -> None:
        self._version = version
        self._lease = Lease(version)

    def do(self) -> bool:
        """Whether its chunks are written. What another worker or a person took away meanwhile is left to them."""
        try:
            return self._do()
        except (LeaseLostError, ExtractionCancelledError):
            return False

    def _do(self) -> bool:
        try:
            self._lease.update(stage=Stage.READING)
            reading = self._read()
            self._lease.update(stage=Stage.CHUNKING)
            write_chunks(self._version, reading, keep_on=self._lease.check)
        except ExtractionError as error:
            reason = error_text(error)
            log.info("a document could not be read: %s", reason)
            self._lease.fail(reason, stage=Stage.FAILED)
            return False
        self._lease.finish(stage=Stage.EMBEDDING)
        jobs.wake_worker_on_commit("index_pending")
        return True

    def _read(self) -> ExtractedText:
        conf = settings.CATO.documents
        limits = ExtractionLimits(
            memory_mb=conf.reader_memory_mb,
            processor_seconds=conf.reader_processor_seconds,
            wall_seconds=conf.reader_seconds,
            max_characters=conf.max_characters,
        )
        with _on_disk(self._version) as path:
            return extraction.read(
                path, name=self._version.document.name, limits=limits, stop=lambda: not self._lease.is_held()
            )


@contextmanager
def _on_disk(version: DocumentVersion) -> Iterator[Path]:
    """The original as a file on this machine, wherever it is stored. Raises ExtractionError where it is gone."""
    try:
        with version.original.open("rb") as original, tempfile.NamedTemporaryFile(prefix="cato-") as copy:
            for chunk in original.chunks():
                copy.write(chunk)
            copy.flush()
            yield Path(copy.name)
    except FileNotFoundError as error:
        raise ExtractionError(gettext_noop("The original is not in the storage any more. Upload it again.")) from error
