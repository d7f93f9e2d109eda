"""Import jobs: upload, cancel, retry, resume and delete."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import InvalidMessageError
from chat.models import IMPORTS, ImportJob
from memory import api as memory
from memory.api import Job, NotFoundError, Space, clean_text, format_number, jobs

_MAX_NAME_LENGTH = 255
_FILE_TTL = timedelta(days=1)  # of failed imports, which can be retried, and of orphaned files


def create_import(
    file: File[bytes], *, owner_id: uuid.UUID, space: Space | None = None, has_channel_projects: bool = False
) -> ImportJob:
    """Store a file of conversations and queue its import into `space`, which the owner can read; None: the personal space.

    With `has_channel_projects`, each channel of a team chat goes to a project of its own instead. Raises
    InvalidMessageError if the file is empty or too large, and InvalidInputError for an archived project.
    """
    if space is not None:
        memory.ensure_open(space)
    name = clean_text(file.name or "").strip()[-_MAX_NAME_LENGTH:] or _("Without a name")
    limit = settings.CATO.chat.max_import_mb
    if not file.size:
        raise InvalidMessageError(_("%(name)s is empty.") % {"name": name})
    if file.size > limit * 1_000_000:
        sentence = _(
            "%(name)s has %(size)s MB; a file to import may have %(most)s (chat.max_import_mb). "
            "Whoever runs this Cato can import it with the command import_history."
        )
        raise InvalidMessageError(
            sentence % {"name": name, "size": format_number(file.size / 1_000_000), "most": limit}
        )
    row = ImportJob(
        owner_id=owner_id,
        space=space,
        has_channel_projects=has_channel_projects,
        name=name,
        due_at=timezone.now(),
    )
    row.file.save(name, file, save=False)
    with memory.delete_file_on_rollback(str(row.file.name)), transaction.atomic():
        row.save(force_insert=True)
        memory.wake_worker_on_commit("import_conversations", module="chat.tasks")
    return row


def list_imports(person_id: uuid.UUID) -> QuerySet[ImportJob]:
    """Return this person's imports, newest first."""
    return ImportJob.objects.filter(owner_id=person_id).order_by("-created_at", "id")


def get_import(person_id: uuid.UUID, import_id: uuid.UUID) -> ImportJob:
    """Return an import of this person. Raises NotFoundError."""
    row = list_imports(person_id).filter(id=import_id).first()
    if row is None:
        raise NotFoundError
    return row


def cancel(row: ImportJob) -> bool:
    """Cancel an import, keeping the imported conversations; return False if it has ended."""
    with transaction.atomic():
        stored = ImportJob.objects.filter(pk=row.pk)
        if not jobs.cancel(stored.filter(state=Job.State.PENDING)):
            return False
        now = timezone.now()
        stored.update(cancelled_at=now, finished_at=now, file="")
        memory.delete_after_commit(row.file.name)
    return True


def retry(row: ImportJob) -> bool:
    """Retry a failed import; return False if it has not failed or its file was deleted."""
    with transaction.atomic():
        failed = ImportJob.objects.filter(pk=row.pk, state=Job.State.FAILED).exclude(file="")
        if not failed.update(finished_at=None):
            return False
        jobs.requeue(failed)
        memory.wake_worker_on_commit("import_conversations", module="chat.tasks")
    return True


def delete_imports_of(person_id: uuid.UUID) -> int:
    """Delete all imports of a person, running ones too; return their number."""
    with transaction.atomic():
        rows = list(ImportJob.objects.filter(owner_id=person_id))
        for row in rows:
            memory.delete_after_commit(row.file.name)
            row.delete()
    return len(rows)


def resume_imports() -> None:
    """Wake a worker for due imports, and delete files of imports that failed long ago."""
    if jobs.has_due(ImportJob.objects.all()):
        # In another task: an import can take minutes, which would delay the rest of the sweep.
        memory.wake_worker_on_commit("import_conversations", module="chat.tasks")
    delete_failed_files()


def delete_failed_files() -> None:
    """Delete the files of imports that failed more than a day ago."""
    old = ImportJob.objects.filter(state=Job.State.FAILED, finished_at__lt=timezone.now() - _FILE_TTL).exclude(file="")
    for row in old:
        with transaction.atomic():
            # The owner can have retried it meanwhile.
            if ImportJob.objects.filter(pk=row.pk, attempt=row.attempt, state=Job.State.FAILED).update(file=""):
                memory.delete_after_commit(row.file.name)


def delete_orphaned_imports(*, dry_run: bool = False) -> int:
    """Delete stored files to which no import refers; return their number."""
    return memory.delete_orphaned_files(ImportJob, "file", folder=IMPORTS, older_than=_FILE_TTL, dry_run=dry_run)


def _list_failed() -> QuerySet[ImportJob]:
    """Return the failed imports that can be retried; a file that cannot be read concerns its owner alone."""
    return ImportJob.objects.filter(state=Job.State.FAILED).exclude(file="").select_related("owner")


def _describe(row: ImportJob) -> tuple[str, datetime]:
    return _("import of %(name)s") % {"name": row.owner}, row.finished_at or row.created_at


jobs.FAILED_KINDS["import"] = jobs.FailedKind(_list_failed, _describe, lambda rows: sum(map(retry, rows)))
