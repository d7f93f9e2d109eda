"""What tests of backups look into: the members of one, its rows, and another one made of it."""

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


def backup(**more: Any) -> bytes:
    out = io.BytesIO()
    back_up(out, **more)
    return out.getvalue()


def emptied(data: bytes) -> io.BytesIO:
    """The backup, when everything it is of is gone."""
    for name in named():
        default_storage.delete(name)
    call_command("flush", interactive=False, verbosity=0)
    return io.BytesIO(data)


def members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def lines(data: bytes, table: str) -> list[dict[str, Any]]:
    parts = [content for name, content in members(data).items() if name.startswith(f"rows/{table}/")]
    return [json.loads(line) for part in parts for line in part.splitlines()]


def by_key(data: bytes, table: str) -> dict[object, dict[str, Any]]:
    return {row["id"]: row for row in lines(data, table)}


def rewritten(data: bytes, change: Callable[[dict[str, bytes]], None]) -> bytes:
    """The backup with other members in it."""
    out, inside = io.BytesIO(), members(data)
    change(inside)
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in inside.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def named() -> list[str]:
    """The stored files that rows name."""
    return [name for model in rows.kept_tables().values() for name in rows.files_of(model)]
