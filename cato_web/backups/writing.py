"""Write a backup while Cato runs: a consistent snapshot of the database, and the files that it names."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from cato_web import VERSION
from cato_web.backups import archive, rows, schema
from cato_web.backups.errors import BackupWriteError
from memory import api as memory
from memory.api import ProgressCallback, no_progress

T = TypeVar("T")
FORMAT = 1
# Attribute of Django's SQLite connections, unknown to type checkers.
_TRANSACTION_MODE = "transaction_mode"
# What file systems answer that know no hard links, such as FAT and some network shares.
_WITHOUT_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS)
_NOTE = (
    "Restore it with `python manage.py restore`. It contains password hashes and, if Cato generated it, the secret "
    "key: keep it as safe as the data directory."
)


@dataclass(frozen=True, slots=True)
class BackupResult:
    """The contents of a backup; `vanished` files were deleted while it was written."""

    rows: int
    files: int
    vanished: int


def back_up(out: IO[bytes], *, with_vectors: bool = True, progress: ProgressCallback = no_progress) -> BackupResult:
    """Write a snapshot of this installation to `out`.

    `with_vectors`: include cached embeddings, the largest part, so that a restore need not compute them again. Raises
    BackupWriteError.
    """
    tables = rows.backed_up_tables()
    if not with_vectors:
        del tables["memory.cachedembedding"]
    migrations = schema.list_applied_migrations()
    with archive.open_writer(out) as writer:
        with _consistent_snapshot():
            counts = {table: rows.count(model) for table, model in tables.items()}
            writer.add_json(archive.MANIFEST, _manifest(migrations, counts))
            _add_secret_key(writer)
            for table, model in tables.items():
                writer.add_rows(table, _report(rows.dump_table(model), "rows", progress))
            names = [name for model in tables.values() for name in rows.file_names(model)]
        added = sum(_add_file(writer, name) for name in _report(names, "files", progress))
        writer.add_json(archive.END, {"files": added, "vanished": len(names) - added})
    return BackupResult(sum(counts.values()), added, len(names) - added)


@contextmanager
def atomic_output(path: Path) -> Iterator[IO[bytes]]:
    """Open a file with mode 600 that gets its name only once it is complete and synced. Raises BackupWriteError."""
    if path.exists():
        raise BackupWriteError(f"{path} already exists. Choose another file.")
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        _publish(temporary, path)
    except OSError as error:
        raise BackupWriteError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        with suppress(OSError):  # it was not created
            temporary.unlink()


def _publish(temporary: Path, path: Path) -> None:
    """Give the file its name. Raises OSError, also if the name was given to another one in the meantime."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _WITHOUT_HARD_LINKS:
            raise
        # Renaming would replace another file, so nothing but this check protects it.
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
        temporary.rename(path)


@contextmanager
def _consistent_snapshot() -> Iterator[None]:
    """Read the database as of now, without blocking writers."""
    if connection.vendor != "sqlite":
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
        return
    connection.ensure_connection()
    original_mode = getattr(connection, _TRANSACTION_MODE)
    # IMMEDIATE, the configured mode, would block writers.
    setattr(connection, _TRANSACTION_MODE, "DEFERRED")
    try:
        with transaction.atomic():
            yield
    finally:
        setattr(connection, _TRANSACTION_MODE, original_mode)


def _manifest(migrations: schema.Migrations, counts: dict[str, int]) -> dict[str, object]:
    active = memory.active_generation_or_none()
    provider, model = (active.provider, active.model) if active else memory.configured_model()
    return {
        "format": FORMAT,
        "cato": VERSION,
        "made_at": timezone.now().isoformat(),
        "database": connection.vendor,
        "embedding": {"provider": provider, "model": model},
        "rows": counts,
        "migrations": migrations,
        "note": _NOTE,
    }


def _add_secret_key(writer: archive.Writer) -> None:
    """Add the secret key if Cato generated it."""
    if settings.CATO.secret_key is None:
        writer.add(archive.SECRET, settings.SECRET_KEY.encode())


def _add_file(writer: archive.Writer, name: str) -> bool:
    """Add a stored file; return False if it was deleted in the meantime. Raises BackupWriteError."""
    try:
        content = default_storage.open(name)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise BackupWriteError(f"The file {name} cannot be read: {error.strerror}.") from error
    with content:
        writer.add_stream(f"{archive.FILES}{name}", content, content.size)
    return True


def _report(items: Iterable[T], what: str, progress: ProgressCallback) -> Iterator[T]:
    for item in items:
        yield item
        progress(what, 1)
