"""A zip file that is written while it is read, in chunks."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

if TYPE_CHECKING:
    from typing_extensions import Buffer

_CHUNK_SIZE = 64 * 1024
# Larger files use ZIP64, which not every program can unpack.
_ZIP64_SIZE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file in a zip file: path, modification time, content in chunks, and estimated size."""

    path: str
    at: datetime
    chunks: Iterable[bytes]
    size: int = 0


class _StreamBuffer(io.RawIOBase):
    """A write-only stream from which the caller drains what was written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, data: Buffer, /) -> int:
        self._parts.append(bytes(data))
        self.size += len(self._parts[-1])
        return len(self._parts[-1])

    def drain(self) -> bytes:
        data = b"".join(self._parts)
        self._parts, self.size = [], 0
        return data


def stream_zip(files: Iterable[ArchiveFile]) -> Iterator[bytes]:
    """Yield a zip file of these files in chunks."""
    buffer = _StreamBuffer()
    with ZipFile(buffer, "w", ZIP_DEFLATED) as archive:
        for entry in files:
            # Dates in zip files start in 1980.
            info = ZipInfo(entry.path, date_time=max(entry.at.astimezone(UTC).timetuple()[:6], (1980, 1, 1, 0, 0, 0)))
            info.compress_type = ZIP_DEFLATED
            info.external_attr = 0o600 << 16
            with archive.open(info, "w", force_zip64=entry.size > _ZIP64_SIZE) as file:
                for chunk in entry.chunks:
                    file.write(chunk)
                    if buffer.size >= _CHUNK_SIZE:
                        yield buffer.drain()
    yield buffer.drain()
