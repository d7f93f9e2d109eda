"""Restoring a backup where nobody is yet: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import Model

from cato_web.accounts.models import User
from cato_web.backups import archive, rows, schema
from cato_web.backups.errors import CorruptBackupError, RestoreError
from cato_web.backups.writing import FORMAT
from cato_web.config.loader import keep_secret_key
from chat.llm import endpoint
from chat.models import Thread
from memory.api import Document, Exchange, ProgressCallback, delete_file_on_rollback, no_progress


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """What came back. `is_key_lost`: the model's API key cannot be read here and has to be typed anew."""

    made_at: datetime
    rows: int
    people: int
    exchanges: int
    files: int
    is_key_lost: bool


def restore(source: IO[bytes], *, progress: ProgressCallback = no_progress) -> RestoreResult:
    """Make this empty installation what the backup says; its index is still to be built.

    A backup of an older Cato is brought up to date. Raises RestoreError, CorruptBackupError; then nothing is changed.
    """
    _check_empty()
    with archive.open_reader(source) as members:
        manifest = _manifest_in(members)
        models = rows.tables(schema.migrate_to(manifest["migrations"], version=manifest["cato"]))
        try:
            loaded, files, secret = _load_all(members, manifest["rows"], models, progress)
        finally:
            call_command("migrate", interactive=False, verbosity=0)
    return RestoreResult(
        made_at=datetime.fromisoformat(manifest["made_at"]),
        rows=sum(loaded.values()),
        people=loaded["people.user"],
        exchanges=Exchange.objects.filter(forgotten_at=None).count(),
        files=files,
        is_key_lost=not secret and endpoint.is_key_undecryptable(),
    )


def _check_empty() -> None:
    there = set(connection.introspection.table_names())
    for model in (User, Thread, Exchange, Document):
        if model._meta.db_table in there and model._base_manager.exists():
            raise RestoreError(
                "There are people or things they said here already, and a backup would take their place. Restore it into "
                "an empty data directory and database. Nothing was changed."
            )


def _manifest_in(members: Iterator[tuple[str, IO[bytes]]]) -> dict[str, Any]:
    name, content = next(members, ("", None))
    if name != archive.MANIFEST or content is None:
        raise CorruptBackupError("it does not say what it is")
    manifest = archive.read_json(content)
    if manifest.get("format") != FORMAT or not {"cato", "made_at", "rows", "migrations"} <= manifest.keys():
        raise RestoreError("This backup is of a form that this Cato does not know. Nothing was changed.")
    return manifest


def _load_all(
    members: Iterator[tuple[str, IO[bytes]]],
    expected: dict[str, int],
    models: dict[str, type[Model]],
    progress: ProgressCallback,
) -> tuple[dict[str, int], int, bool]:
    """Rows, files and key; returns how many rows of each table, how many files, and whether the key came along."""
    loaded: dict[str, int] = defaultdict(int)
    end: dict[str, Any] = {}
    secret = ""
    try:
        with ExitStack() as kept, transaction.atomic():
            store = _FileRestorer(kept)
            rows.remove_all(models.values())
            for name, content in members:
                if name.startswith(archive.ROWS):
                    table = name.removeprefix(archive.ROWS).rpartition("/")[0]
                    if table not in models:
                        raise CorruptBackupError(f"it has rows of {table}, which its own version does not know")
                    count = rows.load_table(models[table], content)
                    loaded[table] += count
                    progress("rows", count)
                elif name.startswith(archive.FILES):
                    store(name.removeprefix(archive.FILES), content)
                    progress("files", 1)
                elif name == archive.SECRET:
                    secret = content.read().decode()
                elif name == archive.END:
                    end = archive.read_json(content)
            if {table: loaded[table] for table in expected} != expected or end.get("files") != store.count:
                raise CorruptBackupError("something of it is missing")
            rows.reset_sequences(models.values())
            connection.check_constraints()
            came_along = bool(secret) and keep_secret_key(settings.CATO, secret)
    except DatabaseError as error:
        raise CorruptBackupError(f"the database does not take its rows ({str(error).strip()})") from error
    except (SuspiciousFileOperation, UnicodeDecodeError) as error:
        raise CorruptBackupError("a part of it cannot be read") from error
    return loaded, store.count, came_along


class _FileRestorer:
    """Puts files where the rows expect them; each is removed again where what `kept` lasts for does not end well."""

    def __init__(self, kept: ExitStack) -> None:
        self._kept = kept
        self.count = 0

    def __call__(self, name: str, content: IO[bytes]) -> None:
        # Nobody is here, so a file of that name is what somebody left behind.
        default_storage.delete(name)
        stored = default_storage.save(name, File(content, name=name))
        self._kept.enter_context(delete_file_on_rollback(stored))
        self.count += 1
        if stored != name:
            raise CorruptBackupError(f"{name} cannot be stored under this name")
