"""Runs export jobs: claims a row, writes the archive to a stored file and saves the progress on the row."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator

from django.core.files import File
from django.core.files.storage import default_storage
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.export.archive import archive_files, count_entries
from cato_web.accounts.export.jobs import is_unchanged
from cato_web.accounts.export.selection import select_own
from cato_web.accounts.export.zip_stream import stream_zip
from cato_web.accounts.models import EXPORTS, ExportJob
from memory.api import Lease, LeaseLostError, jobs

log = logging.getLogger(__name__)

_PROGRESS_INTERVAL = 1.0  # seconds; shorter than a lease, and about as often as the page polls
# One export per process: it occupies one of few threads, and documents must not wait for several of them.
_lock = threading.Lock()


def run_exports() -> int:
    """Run due exports one after the other, and return the number completed; errors are saved on their rows."""
    if not _lock.acquire(blocking=False):
        return 0
    try:
        completed = 0
        while claimed := jobs.claim(ExportJob.objects.order_by("due_at", "id").select_related("person"), 1):
            completed += ExportRun(claimed[0]).run()
        return completed
    finally:
        _lock.release()


class _GeneratedFile(File):  # type: ignore[type-arg]
    """A file whose content is generated while the storage writes it."""

    def __init__(self, content: Iterator[bytes]) -> None:
        super().__init__(None)
        self._content = content

    def chunks(self, chunk_size: int | None = None) -> Iterator[bytes]:
        """Yield the content once."""
        return self._content


class ExportRun:
    """One attempt at an archive, from its beginning."""

    def __init__(self, row: ExportJob) -> None:
        self._row = row
        self._lease = Lease(row)
        self._read = self._size = 0
        self._saved_at = time.monotonic()
        # Each attempt has its own file, so that one whose lease is lost does not write into that of the next.
        self._name = f"{EXPORTS}/{row.pk}-{row.attempt}"

    def run(self) -> bool:
        """Write the archive, and return whether it can be downloaded; otherwise no file remains."""
        is_complete = False
        try:
            is_complete = self._run()
        except LeaseLostError:
            log.info("an export was cancelled, or another worker has taken it over")
        except Exception as error:
            # Any error: the row says so, and another attempt begins again.
            log.exception("an export failed")
            self._schedule_retry(error)
        finally:
            # Also if the process is told to stop.
            if not is_complete:
                default_storage.delete(self._name)
        return is_complete

    def _run(self) -> bool:
        self._begin()
        self._name = default_storage.save(self._name, _GeneratedFile(self._content()))
        self._lease.check()
        self._row.refresh_from_db(fields=["selected_at", "fingerprint"])
        if not is_unchanged(self._row, self._row.person):
            # Something was forgotten meanwhile, which may be in the file: begin again.
            self._lease.release(due_at=timezone.now())
            return False
        self._lease.finish(finished_at=timezone.now(), file=self._name, size=self._size, read=self._read)
        return True

    def _begin(self) -> None:
        """Count the attempt as a failure until it succeeds: writing the archive can kill the worker."""
        if self._row.failures >= jobs.MAX_FAILURES:
            self._lease.fail(_("All attempts failed. See the worker log."), finished_at=timezone.now())
            raise LeaseLostError
        self._lease.update(failures=self._row.failures + 1, read=0, total=None)

    def _content(self) -> Iterator[bytes]:
        """Yield the archive and save the progress. Raises LeaseLostError."""
        selection = select_own(self._row.person, timezone.now())
        self._lease.renew(
            selected_at=selection.until, fingerprint=selection.fingerprint(), total=count_entries(selection)
        )
        for chunk in stream_zip(archive_files(selection, progress=self._on_progress)):
            self._size += len(chunk)
            self._save_due_progress()
            yield chunk

    def _on_progress(self, what: str, count: int) -> None:
        self._read += count
        self._save_due_progress()

    def _save_due_progress(self) -> None:
        if time.monotonic() - self._saved_at >= _PROGRESS_INTERVAL:
            self._saved_at = time.monotonic()
            self._lease.renew(read=self._read)

    def _schedule_retry(self, error: Exception) -> None:
        reason = _("Something went wrong in Cato itself (%(error)s). See the worker log.")
        if jobs.release_for_retry(self._row, reason % {"error": type(error).__name__}, counts=True):
            ExportJob.objects.filter(pk=self._row.pk, state=ExportJob.State.FAILED).update(finished_at=timezone.now())
