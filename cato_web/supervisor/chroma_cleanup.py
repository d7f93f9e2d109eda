"""Removes what was deleted from the files of a Chroma server that does not run at the moment.

    python -m cato_web.supervisor.chroma_cleanup PATH

Chroma leaves the folder of vectors of a dropped collection on the disk, and what was deleted in its database's free
pages and log. Imports neither Django nor chromadb. Exit codes: 0 all is gone, 1 it could not be removed, 2 usage.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

# What the command `chroma` does, without its import of all of chromadb: 33 MB and 0.1 s until a server answers, where the
# command takes 81 MB and 2.4 s.
CHROMA = (
    sys.executable,
    "-P",
    "-c",
    "import sys, chromadb_rust_bindings; chromadb_rust_bindings.cli(['chroma', *sys.argv[1:]])",
)
_HEADER = struct.Struct("<i4Q")
_LENGTH = 4
_BLANK = 1 << 20
_A_SEGMENT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ChromaCleanupError(Exception):
    """What was deleted is still in the files; the message says where, and why."""


def main(argv: Sequence[str] | None = None) -> int:
    """Clean the files at the path that is named; returns the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m cato_web.supervisor.chroma_cleanup PATH\n")
        return 2
    try:
        clean(Path(arguments[0]))
    except ChromaCleanupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def cleanup_marker(path: Path) -> Path:
    """The note by which memory asks for the files at `path` to be cleaned; it stays until they are."""
    return path.with_name(f"{path.name}.clean")


def run_if_requested(path: Path) -> None:
    """Clean where the note says so, and remove the note. The server must not run. Raises ChromaCleanupError."""
    if cleanup_marker(path).exists():
        clean(path)
        cleanup_marker(path).unlink(missing_ok=True)


def clean(path: Path) -> None:
    """Remove the folders that no segment names, blank what the others do not use, then have Chroma write its database anew.

    The server must not run. Raises ChromaCleanupError; may be repeated.
    """
    try:
        _clean(path)
    except (OSError, sqlite3.Error, subprocess.CalledProcessError) as error:
        raise ChromaCleanupError(f"The vector store's files in {path} could not be cleaned: {error}") from error


def _clean(path: Path) -> None:
    database = path / "chroma.sqlite3"
    if not database.is_file():
        return
    for folder in _unnamed(path, database):
        shutil.rmtree(folder)
    for folder in _segments_in(path):
        _zero_unused_space(folder)
    subprocess.run(  # noqa: S603  (the command is ours)
        [*CHROMA, "vacuum", "--path", str(path), "--force"], check=True, stdout=subprocess.DEVNULL
    )


def _unnamed(path: Path, database: Path) -> Iterator[Path]:
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        segments = {row[0] for row in connection.execute("SELECT id FROM segments")}
    yield from (folder for folder in _segments_in(path) if folder.name not in segments)


def _segments_in(path: Path) -> list[Path]:
    return [folder for folder in path.iterdir() if folder.is_dir() and _A_SEGMENT.fullmatch(folder.name)]


def _zero_unused_space(folder: Path) -> None:
    """Write zeros where the files of an index have room for vectors that it does not hold.

    hnswlib writes that room as the server's memory happened to be, with vectors of collections that were dropped before:
    all of it when it makes the files, afterwards only what is held. So they are as long as the first room or as what is
    held, and the room that the header tells may be larger. The header begins with a version (1), an offset, the room,
    how many are held, and the bytes of each; beside each vector stands its length, a number of four bytes.
    """
    header, data, lengths = (folder / name for name in ("header.bin", "data_level0.bin", "length.bin"))
    if not header.is_file():
        return
    version, _, _, held, size = _HEADER.unpack_from(header.read_bytes())
    if version != 1 or data.stat().st_size * _LENGTH != lengths.stat().st_size * size:
        raise OSError(f"{header} is of a layout that is not known; the index beside it was not cleaned.")
    _blank(data, held * size)
    _blank(lengths, held * _LENGTH)


def _blank(path: Path, start: int) -> None:
    end = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(start)
        for at in range(start, end, _BLANK):
            file.write(bytes(min(_BLANK, end - at)))
        file.flush()
        os.fsync(file.fileno())


if __name__ == "__main__":
    sys.exit(main())
