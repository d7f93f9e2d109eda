"""Detect the format of a file by its content; the name only distinguishes kinds of text."""

from __future__ import annotations

import re
import zipfile
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol

from memory.documents.extraction.encoding import looks_like_text
from memory.errors import ExtractionError, gettext_noop


class SeekableFile(Protocol):
    """A file open for reading, from Python or an upload."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next `size` bytes."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move the position in the file."""

    def tell(self) -> int:
        """Return the position in the file."""


class FileFormat(NamedTuple):
    """A supported format: its kind, extensions, and label."""

    kind: str
    extensions: tuple[str, ...]
    label: str


_CODE = (
    "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "tsx", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs", "go", "rs",
    "rb", "php", "pl", "swift", "scala", "lua", "r", "jl", "hs", "ex", "exs", "erl", "clj", "sh", "bash", "zsh", "ps1",
    "sql", "css", "scss", "json", "jsonl", "yaml", "yml", "toml", "ini", "cfg", "conf", "xml", "svg", "tex", "proto",
    "tf", "vue", "dockerfile", "makefile", "patch", "diff",
)  # fmt: skip
FORMATS = (
    FileFormat("text", ("txt", "text", "log"), gettext_noop("Plain text")),
    FileFormat("markdown", ("md", "markdown", "mdown"), "Markdown"),
    FileFormat("html", ("html", "htm", "xhtml"), gettext_noop("Web page (HTML)")),
    FileFormat("pdf", ("pdf",), "PDF"),
    FileFormat("docx", ("docx", "docm"), gettext_noop("Word document (DOCX)")),
    FileFormat("pptx", ("pptx", "pptm", "ppsx"), gettext_noop("PowerPoint slides (PPTX)")),
    FileFormat("xlsx", ("xlsx", "xlsm"), gettext_noop("Excel workbook (XLSX)")),
    FileFormat("csv", ("csv", "tsv", "tab"), gettext_noop("Table (CSV, TSV)")),
    FileFormat("epub", ("epub",), gettext_noop("E-book (EPUB)")),
    FileFormat("email", ("eml",), gettext_noop("Email (EML)")),
    FileFormat("code", _CODE, gettext_noop("Source code")),
)
_HEAD_BYTES = 65_536
# The list of about 20,000 members of a zip archive.
_MAX_DIRECTORY_BYTES = 2_000_000
_TEXT_KINDS = {
    e: f.kind for f in FORMATS if f.kind in ("markdown", "html", "csv", "email", "code") for e in f.extensions
}
# Possessive quantifiers (`*+`, `(?>`): backtracking over comments takes exponential time.
_HTML = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?(?><!--.*?-->\s*)*+<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_HEADER_LINE = re.compile(rb"[A-Za-z][A-Za-z-]*:[ \t]|From ")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# Formats whose text is mixed with markup that should not be found.
_TEXT_ONLY_IN_FORM = (b"{\\rtf", b"%!PS")


def detect_format(file: SeekableFile, name: str) -> str:
    """Return the kind (one of `FORMATS`) of the open file called `name`, and rewind the file.

    Raises ExtractionError for unsupported and empty files.
    """
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if not head:
        raise ExtractionError(gettext_noop("This file is empty."))
    is_text = looks_like_text(head)
    # Some PDF files begin with other lines, and a text may be about PDF.
    if head.startswith(b"%PDF-") or (not is_text and b"%PDF-" in head[:1024]):
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _kind_of_zip(file)
    if head.startswith(_OLD_OFFICE):
        raise ExtractionError(_old_office(file))
    if head.startswith(_TEXT_ONLY_IN_FORM) or not is_text:
        raise ExtractionError(UNSUPPORTED, formats=[f.label for f in FORMATS])
    return _kind_of_text(head, file_extension(name))


def file_extension(name: str) -> str:
    """Return the part of `name` after the last dot in lower case; all of it if there is no dot."""
    return PurePosixPath(name.replace("\\", "/")).name.lower().rpartition(".")[2]


UNSUPPORTED = gettext_noop("Unsupported file type. Supported: %(formats)s.")
ONLY_PICTURES = gettext_noop(
    "This PDF has no text in it, only pictures of pages. Run it through text recognition (OCR) first."
)


def _kind_of_zip(file: SeekableFile) -> str:
    """Return the kind by the members' names. It also runs in the web process, so the listing is bounded."""
    try:
        with zipfile.ZipFile(_BoundedReads(file)) as package:
            members = set(package.namelist())
    except (zipfile.BadZipFile, NotImplementedError) as error:
        sentence = gettext_noop("This file is damaged: it is not a complete zip archive (%(error)s).")
        raise ExtractionError(sentence, error=str(error)) from error
    finally:
        file.seek(0)
    if "META-INF/container.xml" in members:
        return "epub"
    if "[Content_Types].xml" in members:
        for folder, kind in (("word/", "docx"), ("ppt/", "pptx"), ("xl/", "xlsx")):
            if any(member.startswith(folder) for member in members):
                return kind
    raise ExtractionError(UNSUPPORTED, formats=[f.label for f in FORMATS])


class _BoundedReads:
    """A zip file of which `zipfile` reads the list of members at once, but not if it is longer than any document's."""

    def __init__(self, file: SeekableFile) -> None:
        self._file = file
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1, /) -> bytes:
        if size > _MAX_DIRECTORY_BYTES:
            raise ExtractionError(gettext_noop("This file holds too many parts to be a document."))
        return self._file.read(size)


def _old_office(file: SeekableFile) -> str:
    """Return why a file in the container of old Office formats is unsupported; encrypted files also use it."""
    encrypted, previous = "EncryptedPackage".encode("utf-16-le"), b""
    while piece := file.read(_HEAD_BYTES):
        if encrypted in previous + piece:
            return gettext_noop("This document is protected by a password. Remove it and upload again.")
        previous = piece[-len(encrypted) :]
    return gettext_noop("This file is in an old Office format. Save it as DOCX, PPTX, XLSX or PDF and upload that.")


def _kind_of_text(head: bytes, extension: str) -> str:
    kind = _TEXT_KINDS.get(extension, "text")
    if kind == "text" and _HTML.match(head.removeprefix(b"\xef\xbb\xbf")):
        return "html"
    if kind == "email" and not _HEADER_LINE.match(head):
        return "text"
    return kind
