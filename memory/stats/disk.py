"""Disk usage of the database, of the search index if it is on this machine, and of the originals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """Sizes in bytes; `index` is None if the search index is on another machine."""

    database: int
    index: int | None
    originals: int


def disk_use() -> DiskUsage:
    """Measure the current disk usage."""
    index: Path = settings.CATO.vector_store.path
    return DiskUsage(
        database=_database(),
        index=sum(_sizes(index)) if index.is_dir() else None,
        originals=sum(_sizes(Path(settings.MEDIA_ROOT))),
    )


def index_location() -> str:
    """Return the folder of the search index if it is on this machine, else the URL of the vector store."""
    conf = settings.CATO
    if conf.vector_store.path.is_dir():
        return str(conf.vector_store.path)
    address = urlsplit(str(conf.chroma_url or ""))
    return f"{address.scheme}://{address.hostname}:{address.port}" if address.hostname else ""


def _database() -> int:
    if connection.vendor == "sqlite":
        files = (Path(f"{connection.settings_dict['NAME']}{ending}") for ending in ("", "-wal", "-shm"))
        return sum(file.stat().st_size for file in files if file.is_file())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def _sizes(folder: Path) -> Iterator[int]:
    for inside, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(inside, name)).st_size
            except FileNotFoundError:  # the file was deleted meanwhile
                continue
