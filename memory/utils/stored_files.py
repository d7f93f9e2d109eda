"""Files that rows name: not left behind where the row is not written, and removed where no row names them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from memory.utils.batching import batched

_TOGETHER = 200
# A younger one's row may be about to be written.
YOUNG = timedelta(hours=1)


@contextmanager
def delete_file_on_rollback(name: str) -> Iterator[None]:
    """Delete the stored file of this name where the row that is to name it could not be written."""
    try:
        yield
    except BaseException:  # raised again at once: whatever it was, a file that no row names is not left behind
        default_storage.delete(name)
        raise


def delete_after_commit(name: str | None) -> None:
    """Delete the stored file of this name, if any, once the row that named it is gone for good."""
    if name:
        transaction.on_commit(lambda: default_storage.delete(name))


def delete_orphaned_files(
    model: type[Model], field: str, *, folder: str, older_than: timedelta = YOUNG, dry_run: bool = False
) -> int:
    """Remove files of a folder that no row names in `field`, such as a crash leaves between the two; returns how many."""
    if not default_storage.exists(folder):
        return 0
    removed, long_ago = 0, timezone.now() - older_than
    for names in batched((f"{folder}/{name}" for name in default_storage.listdir(folder)[1]), _TOGETHER):
        rows = model._default_manager.filter(**{f"{field}__in": names})
        for name in set(names) - set(rows.values_list(field, flat=True)):
            # What was removed a moment ago has taken its file along.
            with suppress(FileNotFoundError):
                if default_storage.get_modified_time(name) < long_ago:
                    if not dry_run:
                        default_storage.delete(name)
                    removed += 1
    return removed
