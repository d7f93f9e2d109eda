"""A backup as a file: a compressed tar that any system unpacks, written and read in one go, never held in memory.

manifest.json                   what it is: of which version, when, how many rows of which table
secret_key                      where Cato made that itself
rows/memory.exchange/00001      rows of a table, a JSON object in each line
files/documents/3f0c…           originals, pictures and files to import, under the names by which rows know them
end.json                        how many files there are; what lacks it was broken off
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
# Bytes of rows that are held until they go into the file together.
_PART = 1 << 20
# Of what is compressed half is vectors, on which more effort is lost.
_LEVEL = 3
_BROKEN = (tarfile.TarError, zlib.error, gzip.BadGzipFile, EOFError)


class Writer:
    """Adds members to the file, one after another."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar

    def add(self, name: str, data: bytes) -> None:
        self.add_stream(name, io.BytesIO(data), len(data))

    def add_json(self, name: str, value: object) -> None:
        self.add(name, json.dumps(value, ensure_ascii=False, indent=2).encode())

    def add_stream(self, name: str, content: IO[bytes], size: int) -> None:
        """Add `size` bytes of what can be read there. Raises OSError where they cannot."""
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = size, 0o600, int(time.time())
        self._tar.addfile(member, content)
        self._tar.members = []  # type: ignore[attr-defined]  # it would remember them all

    def add_rows(self, table: str, lines: Iterable[bytes]) -> None:
        """Add a table's rows, a line for each, in members of about a megabyte."""
        part, number = bytearray(), 1
        for line in lines:
            part += line
            if len(part) >= _PART:
                self.add(f"{ROWS}{table}/{number:05d}", bytes(part))
                part.clear()
                number += 1
        if part:
            self.add(f"{ROWS}{table}/{number:05d}", bytes(part))


@contextmanager
def open_writer(out: IO[bytes]) -> Iterator[Writer]:
    """Write a backup into `out`, which stays open."""
    with (
        gzip.GzipFile(fileobj=out, mode="wb", compresslevel=_LEVEL) as packed,
        tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        yield Writer(tar)


@contextmanager
def open_reader(source: IO[bytes]) -> Iterator[Iterator[tuple[str, IO[bytes]]]]:
    """The members of a backup with their content, each to be read before the next. Raises CorruptBackupError."""
    try:
        with gzip.GzipFile(fileobj=source, mode="rb") as packed, tarfile.open(fileobj=packed, mode="r|") as tar:
            yield _members(tar, packed)
    except _BROKEN as error:
        raise CorruptBackupError("it ends in the middle, or is no backup at all") from error


def read_json(content: IO[bytes]) -> dict[str, Any]:
    """The object in a member. Raises CorruptBackupError."""
    try:
        value = json.load(content)
    except ValueError as error:
        raise CorruptBackupError("a part of it cannot be read") from error
    if not isinstance(value, dict):
        raise CorruptBackupError("a part of it cannot be read")
    return value


def _members(tar: tarfile.TarFile, packed: gzip.GzipFile) -> Iterator[tuple[str, IO[bytes]]]:
    while (member := tar.next()) is not None:
        tar.members = []  # type: ignore[attr-defined]  # as above
        content = tar.extractfile(member)
        if content is None:
            raise CorruptBackupError(f"{member.name} in it is no file")
        yield member.name, content
    while packed.read(_PART):  # to its end, where the checksum is
        pass
