"""Restore a backup into an empty installation, in one transaction."""

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
from django.db import DatabaseError, OperationalError, connection, transaction
from django.db.models import Model

from cato_web.accounts.models import User
from cato_web.backups import archive, legacy, rows, schema
from cato_web.backups.errors import CorruptBackupError, RestoreError
from cato_web.backups.lost_secrets import lost_secrets
from cato_web.backups.writing import FORMAT
from cato_web.config.loader import keep_secret_key
from chat.models import Thread
from memory.api import Document, Exchange, ProgressCallback, delete_file_on_rollback, no_progress


@dataclass(frozen=True, slots=True)
class RestoreResult:
    """The result of a restore. `lost_secrets`: what cannot be decrypted because the secret key is another one."""

    made_at: datetime
    rows: int
    people: int
    exchanges: int
    files: int
    lost_secrets: list[str]


def restore(source: IO[bytes], *, progress: ProgressCallback = no_progress) -> RestoreResult:
    """Load a backup into this empty installation; the search index still has to be built.

    A backup of an older version is migrated. Raises RestoreError and CorruptBackupError.
    """
    try:
        _check_empty()
        return _restore(source, progress)
    except (OSError, OperationalError) as error:  # a full disk, or a database server that has ended
        raise RestoreError(
            f"The backup was not restored completely: {str(error).strip()}. Solve this, and repeat it with an empty "
            "data directory and database."
        ) from error


def _restore(source: IO[bytes], progress: ProgressCallback) -> RestoreResult:
    with archive.open_reader(source) as members:
        manifest = _read_manifest(members)
        is_legacy = legacy.is_legacy(manifest["migrations"])
        migrations = legacy.MIGRATIONS if is_legacy else manifest["migrations"]
        models = rows.tables(schema.migrate_to(migrations, version=manifest["cato"]))
        try:
            loaded, files, secret = _load_all(members, manifest["rows"], models, progress, is_legacy=is_legacy)
        finally:
            call_command("migrate", interactive=False, verbosity=0)
    return RestoreResult(
        made_at=datetime.fromisoformat(manifest["made_at"]),
        rows=sum(loaded.values()),
        people=loaded["people.user"],
        exchanges=Exchange.objects.filter(forgotten_at=None).count(),
        files=files,
        lost_secrets=[] if secret else lost_secrets(),
    )


def _check_empty() -> None:
    existing_tables = set(connection.introspection.table_names())
    for model in (User, Thread, Exchange, Document):
        if model._meta.db_table in existing_tables and model._base_manager.exists():
            raise RestoreError(
                "This installation is not empty, and a backup would replace its data. Restore it into "
                "an empty data directory and database. Nothing was changed."
            )


def _read_manifest(members: Iterator[tuple[str, IO[bytes]]]) -> dict[str, Any]:
    name, content = next(members, ("", None))
    if name != archive.MANIFEST or content is None:
        raise CorruptBackupError("it has no manifest")
    manifest = archive.read_json(content)
    if manifest.get("format") != FORMAT or not {"cato", "made_at", "rows", "migrations"} <= manifest.keys():
        raise RestoreError("This version of Cato does not support the backup's format. Nothing was changed.")
    return manifest


def _load_all(
    members: Iterator[tuple[str, IO[bytes]]],
    expected: dict[str, int],
    models: dict[str, type[Model]],
    progress: ProgressCallback,
    *,
    is_legacy: bool,
) -> tuple[dict[str, int], int, bool]:
    """Load everything; return the rows per table, the number of files, and whether the secret key was restored."""
    tables, columns = (legacy.TABLES, legacy.COLUMNS) if is_legacy else ({}, {})
    expected = {tables.get(table, table): count for table, count in expected.items()}
    loaded: dict[str, int] = defaultdict(int)
    end: dict[str, Any] = {}
    secret = ""
    try:
        with ExitStack() as rollback, transaction.atomic():
            restorer = _FileRestorer(rollback)
            rows.delete_all_rows(models.values())
            for name, content in members:
                if name.startswith(archive.ROWS):
                    table = name.removeprefix(archive.ROWS).rpartition("/")[0]
                    table = tables.get(table, table)
                    if table not in models:
                        raise CorruptBackupError(f"it has rows of {table}, a table that its version does not have")
                    count = rows.load_table(models[table], content, renamed=columns.get(table, {}))
                    loaded[table] += count
                    progress("rows", count)
                elif name.startswith(archive.FILES):
                    restorer(name.removeprefix(archive.FILES), content)
                    progress("files", 1)
                elif name == archive.SECRET:
                    secret = content.read().decode()
                elif name == archive.END:
                    end = archive.read_json(content)
            if {table: loaded[table] for table in expected} != expected or end.get("files") != restorer.count:
                raise CorruptBackupError("rows or files are missing")
            rows.reset_sequences(models.values())
            connection.check_constraints()
            is_key_restored = bool(secret) and keep_secret_key(settings.CATO, secret)
    except OperationalError:  # not because of its rows
        raise
    except DatabaseError as error:
        raise CorruptBackupError(f"the database rejects its rows ({str(error).strip()})") from error
    except (SuspiciousFileOperation, UnicodeDecodeError) as error:
        raise CorruptBackupError("a part of it cannot be read") from error
    return loaded, restorer.count, is_key_restored


class _FileRestorer:
    """Stores files; deletes them again if the `rollback` stack ends with an error."""

    def __init__(self, rollback: ExitStack) -> None:
        self._rollback = rollback
        self.count = 0

    def __call__(self, name: str, content: IO[bytes]) -> None:
        # The installation is empty, so an existing file of this name is left over.
        default_storage.delete(name)
        stored = default_storage.save(name, File(content, name=name))
        self._rollback.enter_context(delete_file_on_rollback(stored))
        self.count += 1
        if stored != name:
            raise CorruptBackupError(f"{name} cannot be stored under this name")
