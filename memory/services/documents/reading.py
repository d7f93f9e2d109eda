"""Reading what was received: the text out of the file, in a process of its own, then cut into pieces."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from memory import jobs, nudge, readers
from memory.errors import CannotRead
from memory.models import DocumentVersion, Job
from memory.readers import Limits, Reading, ReadingStopped
from memory.services.documents.pieces import lay_out
from memory.shown import sentence

log = logging.getLogger(__name__)

Stage = DocumentVersion.Stage
# Seconds; well within a lease.
_RENEWED_EVERY = 10.0


def read_documents(limit: int | None = None) -> int:
    """Read and cut what is due, one file after the other, at most `limit`; returns how many got their pieces.

    What cannot be read is said on its row; nothing is raised for it.
    """
    done = tried = 0
    while (limit is None or tried < limit) and (claimed := jobs.claim(_due(), 1)):
        tried += 1
        done += _Work(claimed[0]).do()
    return done


def is_reading_due() -> bool:
    """Whether a file waits for its reader."""
    return jobs.has_due(_due())


def _due() -> QuerySet[DocumentVersion]:
    waiting = DocumentVersion.objects.filter(stage__in=[Stage.RECEIVED, Stage.READING, Stage.CHUNKING])
    return waiting.select_related("document__space", "document__serving").order_by("due_at", "id")


class _Work:
    """One version while it is read by this worker, which holds it as long as it renews its lease."""

    def __init__(self, version: DocumentVersion) -> None:
        self._version = version
        self._renewed = time.monotonic()

    def do(self) -> bool:
        """Whether its pieces are laid out. What another worker or a person took away meanwhile is left to them."""
        try:
            self._enter(Stage.READING)
            reading = self._read()
            self._enter(Stage.CHUNKING)
            lay_out(self._version, reading, keep_on=self._keep_on)
        except ReadingStopped:
            return False
        except CannotRead as error:
            self._fail(sentence(error))
            return False
        held = self._held().update(stage=Stage.EMBEDDING, state=Job.State.DONE, locked_until=None, error="")
        nudge.after_commit("index_pending")
        return bool(held)

    def _read(self) -> Reading:
        conf = settings.CATO.documents
        limits = Limits(
            memory_mb=conf.reader_memory_mb,
            processor_seconds=conf.reader_processor_seconds,
            wall_seconds=conf.reader_seconds,
            max_characters=conf.max_characters,
        )
        with _on_disk(self._version) as path:
            return readers.read(
                path, name=self._version.document.name, limits=limits, stop=lambda: not self._is_still_ours()
            )

    def _enter(self, stage: DocumentVersion.Stage) -> None:
        if not self._held().update(stage=stage):
            raise ReadingStopped

    def _keep_on(self) -> None:
        """Renew the lease now and then. Raises ReadingStopped where it is no longer ours."""
        if not self._is_still_ours():
            raise ReadingStopped

    def _is_still_ours(self) -> bool:
        if time.monotonic() - self._renewed < _RENEWED_EVERY:
            return self._held().exists()
        self._renewed = time.monotonic()
        return jobs.renew(self._held())

    def _held(self) -> QuerySet[DocumentVersion]:
        return DocumentVersion.objects.filter(
            pk=self._version.pk, attempt=self._version.attempt, stage__in=DocumentVersion.UNDER_WAY
        )

    def _fail(self, reason: str) -> None:
        log.info("a document could not be read: %s", reason)
        self._held().update(stage=Stage.FAILED, state=Job.State.FAILED, locked_until=None, error=reason[:300])


@contextmanager
def _on_disk(version: DocumentVersion) -> Iterator[Path]:
    """The original as a file on this machine, wherever it is stored. Raises CannotRead where it is gone."""
    try:
        with version.original.open("rb") as original, tempfile.NamedTemporaryFile(prefix="cato-") as copy:
            for chunk in original.chunks():
                copy.write(chunk)
            copy.flush()
            yield Path(copy.name)
    except FileNotFoundError as error:
        raise CannotRead(gettext_noop("The original is not in the storage any more. Upload it again.")) from error
