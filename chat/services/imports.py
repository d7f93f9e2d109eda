"""Imports as rows: a file is kept, a worker is told of it, and its owner may cancel it, try again, or leave."""

from __future__ import annotations

import time
import uuid
from contextlib import suppress
from datetime import timedelta

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from chat.errors import NotFound, Refused
from chat.models import Import
from memory import jobs, nudge
from memory.models import Job
from memory.text import clean_text

_FOLDER = "imports"
_LONGEST_NAME = 255
# How long the file of a failed import waits for its owner to try again, and one that no row names for its row.
_KEPT_FOR = timedelta(days=1)
_LOOKED_FOR_EVERY = 3600.0  # seconds
_looked_at: float | None = None


def receive(file: File[bytes], *, owner_id: uuid.UUID) -> Import:
    """Keep a file of conversations; a worker takes it in. Raises Refused for one that is empty or too large."""
    name = clean_text(file.name or "").strip()[-_LONGEST_NAME:] or "Without a name"
    most = settings.CATO.chat.max_import_mb
    if not file.size:
        raise Refused(f"{name} is empty.")
    if file.size > most * 1_000_000:
        raise Refused(
            f"{name} has {file.size / 1_000_000:,.0f} MB; a file to import may have {most} (chat.max_import_mb). "
            "Whoever runs this Cato can import it with the command import_history."
        )
    row = Import(owner_id=owner_id, name=name, due_at=timezone.now())
    row.file.save(name, file, save=False)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
            nudge.after_commit("import_conversations", module="chat.tasks")
    except BaseException:  # raised again below: whatever it was, a file that no row names is not left behind
        default_storage.delete(str(row.file.name))
        raise
    return row


def imports_of(person_id: uuid.UUID) -> QuerySet[Import]:
    """One's own imports, the newest first."""
    return Import.objects.filter(owner_id=person_id).order_by("-created_at", "id")


def own_import(person_id: uuid.UUID, import_id: uuid.UUID) -> Import:
    """An import of one's own. Raises NotFound."""
    row = imports_of(person_id).filter(id=import_id).first()
    if row is None:
        raise NotFound
    return row


def cancel(row: Import) -> bool:
    """Go no further with it; what was imported stays. False where it was over already."""
    with transaction.atomic():
        same = Import.objects.filter(pk=row.pk)
        if not jobs.stop(same.filter(state=Job.State.PENDING)):
            return False
        now = timezone.now()
        same.update(cancelled_at=now, finished_at=now, file="")
        delete_after_commit(row)
    return True


def retry(row: Import) -> bool:
    """Go on with one that failed. False where its file is not kept any more, or it did not fail."""
    with transaction.atomic():
        failed = Import.objects.filter(pk=row.pk, state=Job.State.FAILED).exclude(file="")
        if not failed.update(finished_at=None):
            return False
        jobs.begin_again(failed)
        nudge.after_commit("import_conversations", module="chat.tasks")
    return True


def remove_imports_of(person_id: uuid.UUID) -> int:
    """Remove all that is kept of a person's imports, those under way too; returns how many there were."""
    with transaction.atomic():
        rows = list(Import.objects.filter(owner_id=person_id))
        for row in rows:
            delete_after_commit(row)
            row.delete()
    return len(rows)


def sweep_imports() -> None:
    """Have taken over what a worker left, and remove files that nobody asks for any more. Repeatable."""
    global _looked_at
    if jobs.has_due(Import.objects.all()):
        # Not here: it may take minutes, and what else is swept would wait for it.
        nudge.after_commit("import_conversations", module="chat.tasks")
    remove_old_imports()
    if _looked_at is None or time.monotonic() - _looked_at > _LOOKED_FOR_EVERY:
        _looked_at = time.monotonic()
        remove_unnamed_imports()


def remove_old_imports() -> int:
    """Remove the files of imports that failed long ago; returns how many."""
    old = Import.objects.filter(state=Job.State.FAILED, finished_at__lt=timezone.now() - _KEPT_FOR).exclude(file="")
    removed = 0
    for row in old:
        with transaction.atomic():
            # Its owner may be trying again at this moment.
            if Import.objects.filter(pk=row.pk, attempt=row.attempt, state=Job.State.FAILED).update(file=""):
                delete_after_commit(row)
                removed += 1
    return removed


def remove_unnamed_imports() -> int:
    """Remove files that no row names, such as a crash leaves between the two; young ones are left alone."""
    if not default_storage.exists(_FOLDER):
        return 0
    removed, long_ago = 0, timezone.now() - _KEPT_FOR
    for name in default_storage.listdir(_FOLDER)[1]:
        path = f"{_FOLDER}/{name}"
        # An import that ended a moment ago has taken its file along.
        with suppress(FileNotFoundError):
            if not Import.objects.filter(file=path).exists() and default_storage.get_modified_time(path) < long_ago:
                default_storage.delete(path)
                removed += 1
    return removed


def delete_after_commit(row: Import) -> None:
    """Delete the file that this row named when it was read."""
    if name := str(row.file.name or ""):
        transaction.on_commit(lambda: default_storage.delete(name))
