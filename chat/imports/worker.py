"""Imports at work: a worker holds the row of a file, takes in its conversations and says on the row how far it is."""

from __future__ import annotations

import logging
import threading
import time
from typing import BinaryIO, cast

from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.imports.formats.pieces import pieces
from chat.imports.formats.sources import DAMAGED, streams
from chat.imports.importer import ImportReport, import_conversations
from chat.models import ImportJob
from memory import api as memory
from memory.api import ExtractionError, InvalidInputError, Job, Lease, LeaseLostError, jobs

log = logging.getLogger(__name__)

_MAX_TITLE_LENGTH = 200
# Seconds; well within a lease, and about as often as the page asks.
_PROGRESS_INTERVAL = 1.0
# A worker has few threads, and an import takes one for minutes: documents are not to wait for several of them.
_lock = threading.Lock()


def run_imports() -> int:
    """Take in the files that are due, one after the other; returns how many came to their end.

    One at a time in this process. What cannot be imported is said on its row; nothing is raised for it.
    """
    if not _lock.acquire(blocking=False):
        return 0
    try:
        done = 0
        while claimed := jobs.claim(ImportJob.objects.order_by("due_at", "id"), 1):
            done += ImportRun(claimed[0]).do()
        return done
    finally:
        _lock.release()


class ImportRun:
    """One attempt at a file. It begins at the beginning, finds what earlier attempts took in, and counts that once."""

    def __init__(self, row: ImportJob) -> None:
        self._row = row
        self._lease = Lease(row)
        self._report = ImportReport()
        self._read = 0
        self._saved_at = time.monotonic()
        self._saved_counts = _imported_counts(self._report)
        self._saved_skipped_count = 0

    def do(self) -> bool:
        """Whether all of the file is imported."""
        try:
            return self._do()
        except LeaseLostError:
            self._save_cancelled_counts()
            return False

    def _do(self) -> bool:
        try:
            self._begin()
            with default_storage.open(str(self._row.file.name), "rb") as kept:
                file = cast(BinaryIO, kept)
                if self._row.total is None:
                    self._count(file)
                file.seek(0)
                import_conversations(
                    file, person_id=self._row.owner_id, progress=self._on_progress, report=self._report
                )
        except LeaseLostError:
            raise
        except FileNotFoundError:
            self._fail(_("The file is not in the storage any more. Import it again."))
            return False
        except (InvalidInputError, ExtractionError) as error:
            self._fail(str(error))
            return False
        except Exception as error:
            # Whatever it was, the row keeps what was taken in, and another attempt may come further.
            log.exception("an import broke off")
            self._schedule_retry(error)
            return False
        self._finish()
        return True

    def _begin(self) -> None:
        """Count this attempt as a failure until it proves to be none: a file may end the worker that reads it."""
        if self._row.failures >= jobs.MAX_FAILURES:
            reason = _("Import failed repeatedly. See the worker log.")
            self._lease.fail(reason, finished_at=timezone.now())
            raise LeaseLostError
        self._lease.update(failures=self._row.failures + 1)

    def _count(self, file: BinaryIO) -> None:
        """Note how many conversations there are, so that people see how far it is."""
        total = 0
        for _name, stream in streams(file):
            try:
                for _piece in pieces(stream):
                    total += 1
                    if self._is_progress_due():
                        self._save_progress()
            except (ExtractionError, *DAMAGED):
                total += 1  # what is wrong is told in the place of a conversation
        self._lease.update(total=total)

    def _on_progress(self, what: str, count: int) -> None:
        """Keep the row up to date with what was imported."""
        is_whole = what == "conversations"
        self._read += count if is_whole else 0
        if self._is_progress_due() or (is_whole and self._saved_counts != _imported_counts(self._report)):
            self._save_progress()

    def _is_progress_due(self) -> bool:
        return time.monotonic() - self._saved_at >= _PROGRESS_INTERVAL

    def _save_progress(self) -> None:
        """Say how far it is and hold the row for another lease. Raises LeaseLostError."""
        self._saved_at, self._saved_counts = time.monotonic(), _imported_counts(self._report)
        counts = self._counts()
        if self._saved_skipped_count == self._report.skipped_count:
            # The list may be long, and there is nothing new in it.
            del counts["skipped"]
        self._saved_skipped_count = self._report.skipped_count
        self._lease.renew(**counts)

    def _counts(self) -> dict[str, object]:
        """What the row says of the file; what an earlier attempt imported is found there by this one."""
        report, row = self._report, self._row
        return {
            "read": self._read,
            "found": report.found,
            "imported": row.imported + report.imported,
            "already_there": max(0, report.already_there - row.imported),
            "turns": row.turns + report.turns,
            "skipped_count": report.skipped_count,
            "skipped": [[title[:_MAX_TITLE_LENGTH], why] for title, why in report.skipped],
            "left_out": dict(report.left_out),
        }

    def _finish(self) -> None:
        """All of the file is imported, and it is not needed any more. Raises LeaseLostError."""
        with transaction.atomic():
            self._lease.finish(finished_at=timezone.now(), file="", **self._counts())
            memory.delete_after_commit(self._row.file.name)

    def _fail(self, error: str) -> None:
        """The file cannot be imported, and is not needed any more. Raises LeaseLostError."""
        with transaction.atomic():
            self._lease.fail(error, finished_at=timezone.now(), file="", **self._counts())
            memory.delete_after_commit(self._row.file.name)

    def _save_cancelled_counts(self) -> None:
        """Where it was cancelled, say how far it came: this worker knows it better than the row did."""
        cancelled = ImportJob.objects.filter(pk=self._row.pk, attempt=self._row.attempt + 1).exclude(cancelled_at=None)
        cancelled.update(**self._counts())

    def _schedule_retry(self, error: Exception) -> None:
        reason = _("Something went wrong in Cato itself (%(error)s); the log of the worker says what.")
        reason %= {"error": type(error).__name__}
        self._lease.update(**self._counts())
        if jobs.release_for_retry(self._row, reason, counts=True):
            ImportJob.objects.filter(pk=self._row.pk, state=Job.State.FAILED).update(finished_at=timezone.now())


def _imported_counts(report: ImportReport) -> tuple[int, int]:
    return report.imported, report.turns
