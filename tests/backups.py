"""Helpers for tests of backups: create one, read its members and rows, and change it."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from typing import Any

from django.core.files.storage import default_storage
from django.core.management import call_command

from cato_web.backups import rows
from cato_web.backups.writing import back_up


def create_backup(**options: Any) -> bytes:
    out = io.BytesIO()
    back_up(out, **options)
    return out.getvalue()


def wipe_installation(data: bytes) -> io.BytesIO:
    """Delete all files and rows, and return the backup as a file object."""
    for name in stored_file_names():
        default_storage.delete(name)
    call_command("flush", interactive=False, verbosity=0)
    return io.BytesIO(data)


def members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def rows_of(data: bytes, table: str) -> list[dict[str, Any]]:
    parts = [content for name, content in members(data).items() if name.startswith(f"rows/{table}/")]
    return [json.loads(line) for part in parts for line in part.splitlines()]


def rows_by_id(data: bytes, table: str) -> dict[object, dict[str, Any]]:
    return {row["id"]: row for row in rows_of(data, table)}


def repack(data: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """Return the backup with its members changed by `change`."""
    out, contents = io.BytesIO(), members(data)
    change(contents)
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in contents.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def stored_file_names() -> list[str]:
    """Return the names of the stored files to which rows refer."""
    return [name for model in rows.backed_up_tables().values() for name in rows.file_names(model)]
