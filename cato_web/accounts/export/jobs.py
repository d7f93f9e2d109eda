"""Exports of a person's data: request, find and delete them."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.export.selection import select_own
from cato_web.accounts.models import EXPORTS, ExportJob, User
from memory import api as memory
from memory.api import Job, jobs

# Long enough to come back to it after a weekend; the file is a second copy of everything, so not longer.
EXPIRES_AFTER = timedelta(days=3)


@transaction.atomic
def request_export(person: User) -> ExportJob:
    """Queue an export and delete the previous one; return the present one if it is still being prepared."""
    now = timezone.now()
    rows = ExportJob.objects.filter(person=person)
    row, is_new = ExportJob.objects.select_for_update().get_or_create(
        person=person, defaults={"requested_at": now, "due_at": now}
    )
    if not is_new and row.state != Job.State.PENDING:
        memory.delete_after_commit(row.file.name)
        rows.update(requested_at=now, finished_at=None, total=None, read=0, file="", size=0, is_outdated=False)
        jobs.requeue(rows)
    _wake_worker()
    return rows.get()


def find_export(person: User) -> ExportJob | None:
    """Return the person's export; one that may not be downloaded any more is without its file, or deleted."""
    row = ExportJob.objects.filter(person=person).first()
    return _without_old_file(row) if row and row.file else row


def delete_export_of(person: User) -> None:
    """Delete the person's export, also while it is being prepared."""
    with transaction.atomic():
        for row in ExportJob.objects.select_for_update().filter(person=person):
            memory.delete_after_commit(row.file.name)
            row.delete()


def delete_old_exports() -> None:
    """Delete the files of exports that have expired, or with something that was forgotten since."""
    for row in ExportJob.objects.exclude(file="").select_related("person"):
        _without_old_file(row)


def check_after_forgetting() -> None:
    """Delete the files of exports with something that was forgotten since the last sweep."""
    for row in ExportJob.objects.filter(is_check_due=True).exclude(file="").select_related("person"):
        # First, so that what is forgotten during the check is checked by the next sweep.
        ExportJob.objects.filter(pk=row.pk).update(is_check_due=False)
        _without_old_file(row)


def delete_orphaned_exports(*, dry_run: bool = False) -> int:
    """Delete stored files to which no export refers; return their number."""
    return memory.delete_orphaned_files(ExportJob, "file", folder=EXPORTS, dry_run=dry_run)


def resume_exports() -> None:
    """Wake a worker for due exports, which take too long for the sweep itself."""
    if jobs.has_due(ExportJob.objects.all()):
        _wake_worker()


def is_unchanged(row: ExportJob, person: User) -> bool:
    """Return whether everything in the archive is still there, unchanged, and readable by the person."""
    return row.selected_at is not None and select_own(person, row.selected_at).fingerprint() == row.fingerprint


def _wake_worker() -> None:
    memory.wake_worker_on_commit("export_accounts", module="cato_web.accounts.tasks")


def _without_old_file(row: ExportJob) -> ExportJob | None:
    """Delete an expired export, or the file of an outdated one; return what remains."""
    name = str(row.file.name)
    # In the same state as it was read: the person can have requested another one meanwhile.
    same = ExportJob.objects.filter(pk=row.pk, file=name)
    is_expired = row.finished_at is None or row.finished_at < timezone.now() - EXPIRES_AFTER
    with transaction.atomic():
        if is_expired or not default_storage.exists(name):
            if same.delete()[0]:
                memory.delete_after_commit(name)
        elif is_unchanged(row, row.person):
            return row
        elif same.update(file="", size=0, is_outdated=True):
            memory.delete_after_commit(name)
    return ExportJob.objects.filter(pk=row.pk).first()


def _list_failed() -> QuerySet[ExportJob]:
    return ExportJob.objects.filter(state=Job.State.FAILED).select_related("person")


def _describe(row: ExportJob) -> tuple[str, datetime]:
    return _("export of %(name)s") % {"name": row.person}, row.finished_at or row.requested_at


def _retry(rows: QuerySet[ExportJob]) -> int:
    people = [row.person for row in rows]
    for person in people:
        request_export(person)
    return len(people)


jobs.FAILED_KINDS["export"] = jobs.FailedKind(_list_failed, _describe, _retry)
