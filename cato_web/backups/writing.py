"""Writing a backup beside people who go on: one moment of the database, a few rows at a time, and the files it names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from cato_web import VERSION
from cato_web.backups import archive, rows, schema
from cato_web.backups.errors import BackupWriteError
from memory import api as memory
from memory.api import ProgressCallback, no_progress

FORMAT = 1
# How Django's SQLite begins a transaction; not of every database, so no type checker knows it.
_MODE = "transaction_mode"
_NOTE = (
    "Restore it with `python manage.py restore`. It holds password hashes and, where Cato made it itself, the secret key: "
    "keep it as safe as the data directory."
)


@dataclass(frozen=True, slots=True)
class BackupResult:
    """What is in a backup; `vanished` are files that were removed while it was written."""

    rows: int
    files: int
    vanished: int


def back_up(out: IO[bytes], *, with_vectors: bool = True, progress: ProgressCallback = no_progress) -> BackupResult:
    """Write all that this installation keeps, as it is at one moment, into `out`.

    `with_vectors`: also those of texts that need not be embedded again; they are the most of it. Raises BackupWriteError.
    """
    kept = rows.kept_tables()
    if not with_vectors:
        del kept["memory.cachedembedding"]
    migrations = schema.applied()
    with archive.open_writer(out) as writer:
        with _one_moment():
            counts = {table: rows.count(model) for table, model in kept.items()}
            writer.add_json(archive.MANIFEST, _manifest(migrations, counts))
            _add_secret_key(writer)
            for table, model in kept.items():
                writer.add_rows(table, _heard(rows.dump_table(model), progress))
            names = [name for model in kept.values() for name in rows.files_of(model)]
        added = sum(_add_file(writer, name) for name in _each_heard(names, progress))
        writer.add_json(archive.END, {"files": added, "vanished": len(names) - added})
    return BackupResult(sum(counts.values()), added, len(names) - added)


@contextmanager
def atomic_output(path: Path) -> Iterator[IO[bytes]]:
    """A file that only its owner reads, which has that name once it is whole and on the disk. Raises BackupWriteError."""
    if path.exists():
        raise BackupWriteError(f"{path} exists already. Name another file.")
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.link(draft, path)
    except OSError as error:
        raise BackupWriteError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _one_moment() -> Iterator[None]:
    """Read the database as it is now, whatever is written meanwhile, and hold nobody up."""
    if connection.vendor != "sqlite":
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
        return
    connection.ensure_connection()
    usual = getattr(connection, _MODE)
    # IMMEDIATE, as writers need it, would keep all of them waiting.
    setattr(connection, _MODE, "DEFERRED")
    try:
        with transaction.atomic():
            yield
    finally:
        setattr(connection, _MODE, usual)


def _manifest(migrations: schema.Migrations, counts: dict[str, int]) -> dict[str, object]:
    serving = memory.active_generation_or_none()
    provider, model = (
        (serving.provider, serving.model) if serving else memory.configured_model(settings.CATO.vector_store)
    )
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
    """The key that Cato made itself; one that was configured is kept by whoever did."""
    if settings.CATO.secret_key is None:
        writer.add(archive.SECRET, settings.SECRET_KEY.encode())


def _add_file(writer: archive.Writer, name: str) -> bool:
    """Add a stored file; False where it was removed meanwhile."""
    try:
        content = default_storage.open(name)
    except FileNotFoundError:
        return False
    with content:
        writer.add_stream(f"{archive.FILES}{name}", content, content.size)
    return True


def _heard(lines: Iterator[bytes], progress: ProgressCallback) -> Iterator[bytes]:
    for line in lines:
        yield line
        progress("rows", 1)


def _each_heard(names: list[str], progress: ProgressCallback) -> Iterator[str]:
    for name in names:
        yield name
        progress("files", 1)
