"""Stored files named by rows: copy them, and delete them on rollback, with their row, or when no row names them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import Model
from django.utils import timezone

from memory.utils.batching import batched

_BATCH_SIZE = 200
# The row of a younger file may not be committed yet.
MIN_ORPHAN_AGE = timedelta(hours=1)


@contextmanager
def local_copy(parts: Iterable[bytes]) -> Iterator[Path]:
    """Yield the path of a temporary file with these bytes, for code that reads only files of this machine."""
    with tempfile.NamedTemporaryFile(prefix="cato-") as copy:
        copy.writelines(parts)
        copy.flush()
        yield Path(copy.name)


@contextmanager
def delete_file_on_rollback(name: str) -> Iterator[None]:
    """Delete the stored file if the block raises, because then no row names it."""
    try:
        yield
    except BaseException:  # always raised again; a file without a row must not remain
        default_storage.delete(name)
        raise


def delete_after_commit(name: str | None) -> None:
    """Delete the stored file, if any, after the transaction that deletes its row commits."""
    if name:
        transaction.on_commit(lambda: default_storage.delete(name))


def delete_orphaned_files(
    model: type[Model], field: str, *, folder: str, older_than: timedelta = MIN_ORPHAN_AGE, dry_run: bool = False
) -> int:
    """Delete the files of a folder that no row names in `field`; return how many.

    A crash between writing a file and its row leaves such files. Files younger than `older_than` remain. With `dry_run`
    they are only counted.
    """
    if not default_storage.exists(folder):
        return 0
    removed, long_ago = 0, timezone.now() - older_than
    for names in batched((f"{folder}/{name}" for name in default_storage.listdir(folder)[1]), _BATCH_SIZE):
        rows = model._default_manager.filter(**{f"{field}__in": names})
        for name in set(names) - set(rows.values_list(field, flat=True)):
            # A concurrent deletion may already have removed the file.
            with suppress(FileNotFoundError):
                if default_storage.get_modified_time(name) < long_ago:
                    if not dry_run:
                        default_storage.delete(name)
                    removed += 1
    return removed
