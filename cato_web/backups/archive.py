"""The file format of backups: a compressed tar, written and read as a stream.

manifest.json                   version, time, and the number of rows of each table
secret_key                      if Cato generated it
rows/memory.exchange/00001      rows of a table, one JSON object per line
files/documents/3f0c…           originals, images and import files, by the names in the rows
end.json                        the number of files; missing if the backup is incomplete
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from cato_web.backups.errors import CorruptBackupError

MANIFEST, SECRET, END = "manifest.json", "secret_key", "end.json"
ROWS, FILES = "rows/", "files/"
# Bytes of rows per member.
_CHUNK_SIZE = 1 << 20
# Half of the data is vectors, which higher levels compress no better.
_COMPRESSION_LEVEL = 3
_READ_ERRORS = (tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError)


class Writer:
    """Adds members to the backup."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def add(self, name: str, data: bytes) -> None:
        """Add a member."""
        self.add_stream(name, io.BytesIO(data), len(data))

    def add_json(self, name: str, value: object) -> None:
        """Add a JSON member."""
        self.add(name, json.dumps(value, ensure_ascii=False, indent=2).encode())

    def add_stream(self, name: str, content: IO[bytes], size: int) -> None:
        """Add `size` bytes of `content`. Raises OSError if they cannot be read."""
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = size, 0o600, int(time.time())
        self._tar.addfile(member, content)
        self._tar.members = []  # type: ignore[attr-defined]  # tarfile would keep all of them

    def add_rows(self, table: str, lines: Iterable[bytes]) -> None:
        """Add the rows of a table, one per line, in members of about a megabyte."""
        chunk, number = bytearray(), 1
        for line in lines:
            chunk += line
            if len(chunk) >= _CHUNK_SIZE:
                self.add(f"{ROWS}{table}/{number:05d}", bytes(chunk))
                chunk.clear()
                number += 1
        if chunk:
            self.add(f"{ROWS}{table}/{number:05d}", bytes(chunk))


@contextmanager
def open_writer(out: IO[bytes]) -> Iterator[Writer]:
    """Write a backup to `out`, which stays open."""
    with (
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=_COMPRESSION_LEVEL) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        yield Writer(tar)


@contextmanager
def open_reader(source: IO[bytes]) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """Iterate over the members, each to be read before the next. Raises CorruptBackupError."""
    try:
        with gzip.GzipFile(fileobj=source, mode="rb") as compressed, tarfile.open(fileobj=compressed, mode="r|") as tar:
            yield _members(tar, compressed)
    except _READ_ERRORS as error:
        raise CorruptBackupError("it is truncated, or not a backup") from error


def read_json(content: IO[bytes]) -> dict[str, Any]:
    """Return the object in a member. Raises CorruptBackupError."""
    try:
        value = json.load(content)
    except ValueError as error:
        raise CorruptBackupError("a part of it cannot be read") from error
    if not isinstance(value, dict):
        raise CorruptBackupError("a part of it cannot be read")
    return value


def _members(tar: tarfile.TarFile, compressed: gzip.GzipFile) -> Iterator[tuple[str, IO[bytes]]]:
    while (member := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined]  # as above
        content = tar.extractfile(member)
        if content is None:
            raise CorruptBackupError(f"{member.name} in it is not a file")
        yield member.name, content
    while compressed.read(_CHUNK_SIZE):  # reading to the end verifies the checksum
        pass
