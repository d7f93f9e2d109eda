"""The JSON files of an export: a file, a folder, or a zip."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Self, cast

from django.utils.translation import gettext as _

from memory import api as memory
from memory.api import ExtractionError, format_number

# The errors of a damaged zip, which are also raised while a member is read.
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError)

_MAX_UNPACKED = 4_000_000_000
_MAX_MEMBERS = 200_000
# JSON compresses 1:5, repetitive JSON 1:30; a zip bomb 1:1000, and is small.
_MAX_RATIO = 200
_RATIO_MATTERS_FROM = 20_000_000
_METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
# The folders, and other files, of the export of an account of Cato; files, opinions and statements belong to what was
# imported before them.
_FOLDERS = {"threads", "documents", "attachments"}
_LINES = (
    "notes.jsonl", "records.jsonl", "prompts.jsonl", "instructions.jsonl", "attachments.jsonl", "opinions.jsonl",
    "superseded.jsonl", "statements.jsonl",
)  # fmt: skip


def streams(source: Path | BinaryIO) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield the name and stream of each JSON file to import; a stream is open until the next is yielded.

    Exports also contain files about the account. If files are named `conversations`, or are in a folder of that name,
    only those, and the projects and memories beside them, are used. Raises ExtractionError for a zip that is unsafe or
    damaged, and InvalidInputError for a path that cannot be read.
    """
    if not isinstance(source, Path):
        yield from _in_file(_("The file"), source)
        return
    found = {file.name: file for file in memory.list_server_folder(source)}
    for name in _chosen(found) if source.is_dir() else found:
        with memory.open_server_file(found[name]) as file:
            yield from _in_file(name, cast(BinaryIO, file))


class ExportFiles:
    """The files of an export by their paths, without the folder in which all of them are."""

    def __init__(self, source: Path | BinaryIO) -> None:
        self._source = source
        self._stack = ExitStack()
        self._infos: dict[str, zipfile.ZipInfo] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def names(self) -> Collection[str]:
        """Return the paths of all files."""
        return self._members

    def ensure_safe(self, paths: Collection[str]) -> None:
        """Raise ExtractionError if reading these files of a zip could take too much time or space."""
        _check(len(self.names()), [self._infos[path] for path in paths if path in self._infos])

    @contextmanager
    def open(self, path: str, *, max_bytes: int) -> Iterator[IO[bytes]]:
        """Open a file. Raises ExtractionError if it is missing, larger than `max_bytes`, or damaged."""
        if path not in self._members:
            raise ExtractionError(_("The file is missing in the export."))
        if (info := self._infos.get(path)) is not None:
            _check(1, [info])
            if info.file_size > max_bytes:
                sentence = _("The file has more than %(most)s MB.")
                raise ExtractionError(sentence % {"most": format_number(max_bytes // 1_000_000)})
        try:
            with self._members[path]() as stream:
                yield stream
        except DAMAGED as error:
            raise ExtractionError(_("The file cannot be unpacked (%(error)s).") % {"error": error}) from error

    @cached_property
    def _members(self) -> dict[str, Callable[[], AbstractContextManager[IO[bytes]]]]:
        """The functions that open the files, by their paths."""
        source = self._source
        if isinstance(source, Path):
            found = memory.list_server_folder(source)
            if source.is_dir():
                inside = {file.name.partition("/")[2]: file for file in found}
                top = _top_folder(inside)
                return {name.removeprefix(top): partial(memory.open_server_file, inside[name]) for name in inside}
        position = None if isinstance(source, Path) else source.tell()
        try:
            package = self._stack.enter_context(zipfile.ZipFile(source))
        except DAMAGED:
            return {}  # a JSON file
        finally:
            # The conversations are read from the same file meanwhile.
            if position is not None:
                cast(BinaryIO, source).seek(position)
        top = _top_folder(package.namelist())
        self._infos = {info.filename.removeprefix(top): info for info in package.infolist()}
        return {name: partial(package.open, info) for name, info in self._infos.items()}


def _in_file(name: str, file: BinaryIO) -> Iterator[tuple[str, IO[bytes]]]:
    is_zip = file.read(2) == b"PK"
    file.seek(0)
    if not is_zip:
        yield name, file
        return
    try:
        with zipfile.ZipFile(file) as package:
            members = {member.filename: member for member in package.infolist() if not member.is_dir()}
            chosen = [members[each] for each in _chosen(members)]
            _check(len(members), chosen)
            for member in chosen:
                with package.open(member) as stream:
                    yield member.filename, stream
    except DAMAGED as error:
        raise ExtractionError(
            _("This zip is damaged: it cannot be unpacked (%(error)s).") % {"error": error}
        ) from error


def _chosen(names: Collection[str]) -> list[str]:
    """Return the sorted names of JSON files with conversations, projects and memories, or of all JSON files."""
    top = _top_folder(names)
    files = sorted(name for name in names if name.lower().endswith(".json") and not _is_hidden(name))
    if any(name.startswith(f"{top}threads/") for name in files):  # the export of an account of Cato
        lines = [top + name for name in _LINES if top + name in names]
        return [*(name for name in files if name.startswith((f"{top}threads/", f"{top}documents/"))), *lines]
    if not any(_is_called(name, "conversations") for name in files):
        return files
    return [name for name in files if _is_called(name, "conversations", "projects", "memories")]


def _top_folder(names: Iterable[str]) -> str:
    """Return the folder, with its slash, in which all visible files are; "" if there is none."""
    folders = [name.split("/")[:-1] for name in names if not (_is_hidden(name) or name.endswith("/"))]
    levels = takewhile(lambda level: {*level} == {level[0]} - _FOLDERS, zip(*folders, strict=False))
    return "".join(f"{level[0]}/" for level in levels)


def _is_called(name: str, *beginnings: str) -> bool:
    *folders_above, own = PurePosixPath(name.lower()).parts
    return own.startswith(beginnings) or any(folder in beginnings for folder in folders_above)


def _is_hidden(name: str) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in PurePosixPath(name).parts)


def _check(count: int, chosen: list[zipfile.ZipInfo]) -> None:
    """Check limits by the declared sizes, beyond which `zipfile` does not read. Raises ExtractionError."""
    unpacked = sum(member.file_size for member in chosen)
    packed = sum(member.compress_size for member in chosen)
    if count > _MAX_MEMBERS:
        raise ExtractionError(_("This zip holds more than %(most)s files.") % {"most": format_number(_MAX_MEMBERS)})
    if unpacked > _MAX_UNPACKED:
        sentence = _("This zip unpacks to more than %(most)s MB of conversations.")
        raise ExtractionError(sentence % {"most": format_number(_MAX_UNPACKED // 1_000_000)})
    if unpacked > _RATIO_MATTERS_FROM and unpacked > packed * _MAX_RATIO:
        raise ExtractionError(_("This zip unpacks to more than %(most)s times its size.") % {"most": _MAX_RATIO})
    if any(member.flag_bits & 1 for member in chosen):
        raise ExtractionError(_("This zip is protected by a password. Unpack it first."))
    if any(member.compress_type not in _METHODS for member in chosen):
        raise ExtractionError(_("This zip is compressed in a way that Cato does not support. Unpack it first."))
