"""Runs import jobs: claims a row, imports its file and saves the progress on the row."""

from __future__ import annotations

import logging
import threading
import time
from typing import BinaryIO, cast

from django.contrib.auth import get_user_model
from django.core.files.storage import default_storage
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.imports.formats import count_conversations
from chat.imports.importer import import_conversations
from chat.imports.report import ImportReport
from chat.models import ImportJob
from memory import api as memory
from memory.api import ExtractionError, InvalidInputError, Job, Lease, LeaseLostError, NotFoundError, Space, jobs

log = logging.getLogger(__name__)

_MAX_TITLE_LENGTH = 200
_PROGRESS_INTERVAL = 1.0  # seconds; shorter than a lease, and about as often as the page polls
# One import per process: it occupies one of few threads for minutes, and documents must not wait for several of them.
_lock = threading.Lock()


def run_imports() -> int:
    """Run due imports one after the other, and return the number completed; errors are saved on their rows."""
    if not _lock.acquire(blocking=False):
        return 0
    try:
        completed = 0
        while claimed := jobs.claim(ImportJob.objects.order_by("due_at", "id"), 1):
            completed += ImportRun(claimed[0]).run()
        return completed
    finally:
        _lock.release()


class ImportRun:
    """One attempt at a file, from its beginning; conversations imported by earlier attempts are counted once."""

    def __init__(self, row: ImportJob) -> None:
        self._row = row
        self._lease = Lease(row)
        self._report = ImportReport()
        self._read = 0
        self._saved_at = time.monotonic()
        self._saved_counts = _imported_counts(self._report)
        self._saved_skipped_count = 0

    def run(self) -> bool:
        """Import the file, and return whether all of it is imported."""
        try:
            return self._run()
        except LeaseLostError:
            self._save_cancelled_counts()
            return False

    def _run(self) -> bool:
        try:
            self._begin()
            with default_storage.open(str(self._row.file.name), "rb") as stored:
                file = cast(BinaryIO, stored)
                if self._row.total is None:
                    # To show the progress.
                    self._lease.update(total=count_conversations(file, on_each=self._save_due_progress))
                file.seek(0)
                import_conversations(
                    file,
                    person_id=self._row.owner_id,
                    space=self._space(),
                    has_channel_projects=self._row.has_channel_projects,
                    progress=self._on_progress,
                    report=self._report,
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
            # Any error: the row keeps the counts, and another attempt continues.
            log.exception("an import failed")
            self._schedule_retry(error)
            return False
        self._finish()
        return True

    def _begin(self) -> None:
        """Count the attempt as a failure until it succeeds: reading a file can kill the worker."""
        if self._row.failures >= jobs.MAX_FAILURES:
            reason = _("Import failed repeatedly. See the worker log.")
            self._lease.fail(reason, finished_at=timezone.now())
            raise LeaseLostError
        self._lease.update(failures=self._row.failures + 1)

    def _space(self) -> Space | None:
        """Return the space to import to, if the owner can still add to it. Raises InvalidInputError."""
        if not get_user_model().objects.filter(pk=self._row.owner_id, is_active=True).exists():
            raise InvalidInputError(_("Your account was deactivated."))
        if self._row.space_id is None:
            return None
        try:
            space = memory.get_space(self._row.owner_id, self._row.space_id)
        except NotFoundError as error:
            raise InvalidInputError(_("You are not a member of this space any more.")) from error
        memory.ensure_open(space)
        return space

    def _on_progress(self, what: str, count: int) -> None:
        """Count what was read. Raises LeaseLostError, and InvalidInputError once nothing may be added any more."""
        is_whole = what == "conversations"
        if is_whole:
            self._space()
        self._read += count if is_whole else 0
        if is_whole and self._saved_counts != _imported_counts(self._report):
            self._save_progress()
        else:
            self._save_due_progress()

    def _save_due_progress(self) -> None:
        if time.monotonic() - self._saved_at >= _PROGRESS_INTERVAL:
            self._save_progress()

    def _save_progress(self) -> None:
        """Save the counts and renew the lease. Raises LeaseLostError."""
        self._saved_at, self._saved_counts = time.monotonic(), _imported_counts(self._report)
        counts = self._counts()
        if self._saved_skipped_count == self._report.skipped_count:
            # The list can be long, and has not changed.
            del counts["skipped"]
        self._saved_skipped_count = self._report.skipped_count
        self._lease.renew(**counts)

    def _counts(self) -> dict[str, object]:
        """Return the counts for the row; conversations of earlier attempts count as imported."""
        report, row = self._report, self._row
        return {
            "read": self._read,
            "found": report.found,
            "imported": row.imported + report.imported,
            "already_there": max(0, report.already_there - row.imported),
            "turns": row.turns + report.turns,
            "skipped_count": report.skipped_count,
            "skipped": [[title[:_MAX_TITLE_LENGTH], why] for title, why in report.skipped],
            "left_out": {what: count for what, count in report.left_out.items() if count},
            "not_imported": dict(report.not_imported),
        }

    def _finish(self) -> None:
        """Complete the job and delete its file. Raises LeaseLostError."""
        with transaction.atomic():
            self._lease.finish(finished_at=timezone.now(), file="", **self._counts())
            memory.delete_after_commit(self._row.file.name)

    def _fail(self, error: str) -> None:
        """Fail the job permanently and delete its file. Raises LeaseLostError."""
        with transaction.atomic():
            self._lease.fail(error, finished_at=timezone.now(), file="", **self._counts())
            memory.delete_after_commit(self._row.file.name)

    def _save_cancelled_counts(self) -> None:
        """Save the final counts of a cancelled import; those on the row can be older."""
        cancelled = ImportJob.objects.filter(pk=self._row.pk, attempt=self._row.attempt + 1).exclude(cancelled_at=None)
        cancelled.update(**self._counts())

    def _schedule_retry(self, error: Exception) -> None:
        reason = _("Something went wrong in Cato itself (%(error)s). See the worker log.")
        reason %= {"error": type(error).__name__}
        self._lease.update(**self._counts())
        if jobs.release_for_retry(self._row, reason, counts=True):
            ImportJob.objects.filter(pk=self._row.pk, state=Job.State.FAILED).update(finished_at=timezone.now())


def _imported_counts(report: ImportReport) -> tuple[int, int]:
    return report.imported, report.turns
