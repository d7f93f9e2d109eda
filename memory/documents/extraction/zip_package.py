"""Open zip archives of parts, such as Office documents and e-books, if unpacking them is safe."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple
from urllib.parse import unquote

from memory.documents.extraction.xml_stream import XmlHandler, iterparse
from memory.errors import ExtractionError, gettext_noop

MAX_UNPACKED = 200_000_000
MAX_MEMBERS = 10_000
# Dense XML is compressed 1 to 50, a zip bomb 1 to 1000.
_MAX_RATIO = 200
_RATIO_MATTERS_FROM = 20_000_000


class Relationship(NamedTuple):
    """A reference between parts: the last segment of its type, and the name of the target part."""

    kind: str
    part: str


@contextmanager
def open_archive(file: BinaryIO) -> Iterator[zipfile.ZipFile]:
    """Open the archive. Raises ExtractionError, also inside the `with` block, if it is damaged or too large.

    Declared sizes are checked: `zipfile` returns at most the declared size of a member and then verifies its checksum.
    """
    try:
        with zipfile.ZipFile(file) as package:
            _check(package.infolist())
            yield package
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ExtractionError(
            gettext_noop("This file is damaged: it cannot be unpacked (%(error)s)."), error=str(error)
        ) from error
    except KeyError as error:
        raise ExtractionError(gettext_noop("This file is damaged: a part that it refers to is not in it.")) from error


def parse_part(package: zipfile.ZipFile, part: str, handler: XmlHandler) -> None:
    """Send the XML of `part` to `handler`. Raises KeyError if there is no such part."""
    for _ in iterparse_part(package, part, handler):
        pass


def iterparse_part(package: zipfile.ZipFile, part: str, handler: XmlHandler) -> Iterator[None]:
    """Parse like `parse_part`, yielding regularly so that the caller can collect results."""
    with package.open(part) as file:
        yield from iterparse(file, handler)


def relationships(package: zipfile.ZipFile, part: str) -> dict[str, Relationship]:
    """Return the references of `part` ("" for the package) to other parts, by relation id."""
    folder, name = posixpath.split(part)
    source = posixpath.join(folder, "_rels", name + ".rels")
    if source not in package.NameToInfo:
        return {}
    found = _Relations(folder)
    parse_part(package, source, found)
    return found.by_id


def main_part(package: zipfile.ZipFile) -> str:
    """Return the name of the main document part. Raises ExtractionError if there is none."""
    for relation in relationships(package, "").values():
        if relation.kind == "officeDocument":
            return relation.part
    raise ExtractionError(gettext_noop("This file is damaged: it does not say where its document is."))


def document_title(package: zipfile.ZipFile) -> str:
    """Return the title property of an Office document, or ""."""
    for relation in relationships(package, "").values():
        if relation.kind == "core-properties" and relation.part in package.NameToInfo:
            found = FirstText("title")
            parse_part(package, relation.part, found)
            return found.words
    return ""


def resolve(folder: str, target: str) -> str:
    """Return the name of the member that `target` refers to from `folder`, without its fragment."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(path.lstrip("/") if path.startswith("/") else posixpath.join(folder, path))


class FirstText(XmlHandler):
    """Handle the text of the first element called `name`."""

    def __init__(self, name: str) -> None:
        self.words = ""
        self._name = name
        self._inside = False
        self._done = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._inside = name == self._name and not self._done

    def end(self, name: str) -> None:
        self._done = self._done or self._inside
        self._inside = False

    def text(self, text: str) -> None:
        if self._inside:
            self.words += text


class _Relations(XmlHandler):
    """Handle relations."""

    def __init__(self, folder: str) -> None:
        self.by_id: dict[str, Relationship] = {}
        self._folder = folder

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode") != "External":
            kind = attributes.get("Type", "").rpartition("/")[2]
            part = resolve(self._folder, attributes.get("Target", ""))
            self.by_id[attributes.get("Id", "")] = Relationship(kind, part)


def _check(members: list[zipfile.ZipInfo]) -> None:
    unpacked = sum(member.file_size for member in members)
    packed = sum(member.compress_size for member in members)
    if len(members) > MAX_MEMBERS:
        raise ExtractionError(gettext_noop("This file holds more than %(most)s parts."), most=MAX_MEMBERS)
    if unpacked > MAX_UNPACKED:
        raise ExtractionError(
            gettext_noop("This file unpacks to more than %(most)s MB."), most=MAX_UNPACKED // 1_000_000
        )
    if unpacked > _RATIO_MATTERS_FROM and unpacked > packed * _MAX_RATIO:
        raise ExtractionError(gettext_noop("This file unpacks to more than %(most)s times its size."), most=_MAX_RATIO)
    if any(member.flag_bits & 1 for member in members):
        raise ExtractionError(gettext_noop("This file is protected by a password. Remove it and upload again."))
