"""Which kind of file this is, by what is in it; the name only tells one kind of text from another."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import PurePosixPath
from typing import NamedTuple, Protocol

from memory.documents.extraction.encoding import looks_like_text
from memory.errors import ExtractionError, gettext_noop


class SeekableFile(Protocol):
    """A file open for reading: Python's own, or the one of an upload."""

    def read(self, size: int = -1, /) -> bytes:
        """The next `size` bytes."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go elsewhere in the file."""


class FileFormat(NamedTuple):
    """One kind of file: its name here, its media type, the extensions its files have, its name for people."""

    kind: str
    media_type: str
    extensions: tuple[str, ...]
    label: str


_CODE = (
    "py", "pyi", "js", "mjs", "cjs", "jsx", "ts", "tsx", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs", "go", "rs",
    "rb", "php", "pl", "swift", "scala", "lua", "r", "jl", "hs", "ex", "exs", "erl", "clj", "sh", "bash", "zsh", "ps1",
    "sql", "css", "scss", "json", "jsonl", "yaml", "yml", "toml", "ini", "cfg", "conf", "xml", "svg", "tex", "proto",
    "tf", "vue", "dockerfile", "makefile", "patch", "diff",
)  # fmt: skip
_OFFICE = "application/vnd.openxmlformats-officedocument."
FORMATS = (
    FileFormat("text", "text/plain", ("txt", "text", "log"), gettext_noop("Plain text")),
    FileFormat("markdown", "text/markdown", ("md", "markdown", "mdown"), "Markdown"),
    FileFormat("html", "text/html", ("html", "htm", "xhtml"), gettext_noop("Web page (HTML)")),
    FileFormat("pdf", "application/pdf", ("pdf",), "PDF"),
    FileFormat("docx", _OFFICE + "wordprocessingml.document", ("docx", "docm"), gettext_noop("Word document (DOCX)")),
    FileFormat(
        "pptx",
        _OFFICE + "presentationml.presentation",
        ("pptx", "pptm", "ppsx"),
        gettext_noop("PowerPoint slides (PPTX)"),
    ),
    FileFormat("xlsx", _OFFICE + "spreadsheetml.sheet", ("xlsx", "xlsm"), gettext_noop("Excel workbook (XLSX)")),
    FileFormat("csv", "text/csv", ("csv", "tsv", "tab"), gettext_noop("Table (CSV, TSV)")),
    FileFormat("epub", "application/epub+zip", ("epub",), gettext_noop("E-book (EPUB)")),
    FileFormat("email", "message/rfc822", ("eml",), gettext_noop("E-mail (EML)")),
    FileFormat("code", "text/x-source", _CODE, gettext_noop("Source code")),
)
_HEAD_BYTES = 65_536
# Where the end of a zip archive can be, which may have a comment of 64 kB behind it; and about 20,000 members.
_LAST_RECORD_BYTES = 65_536 + 22
_MOST_DIRECTORY_BYTES = 2_000_000
_TEXT_KINDS = {
    e: f.kind for f in FORMATS if f.kind in ("markdown", "html", "csv", "email", "code") for e in f.extensions
}
# Each part is taken once and for good (`*+`, `(?>`): going back over comments takes exponential time.
_HTML = re.compile(
    rb"\s*+(?:<\?xml[^>]*+>\s*+)?(?><!--.*?-->\s*)*+<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL
)
_HEADER_LINE = re.compile(rb"[A-Za-z][A-Za-z-]*:[ \t]|From ")
_OLD_OFFICE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
# The text of these is wrapped in marks that nobody wants to find.
_TEXT_ONLY_IN_FORM = (b"{\\rtf", b"%!PS")


def detect_format(file: SeekableFile, name: str) -> str:
    """The kind, one of `FORMATS`, of the file open in `file`, which was called `name`; leaves it at its beginning.

    Raises ExtractionError for what cannot be read, empty files among them.
    """
    head = file.read(_HEAD_BYTES)
    file.seek(0)
    if not head:
        raise ExtractionError(gettext_noop("This file is empty."))
    is_text = looks_like_text(head)
    # Some have a line of another protocol before their first; a text may be about PDF.
    if head.startswith(b"%PDF-") or (not is_text and b"%PDF-" in head[:1024]):
        return "pdf"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _kind_of_zip(file)
    if head.startswith(_OLD_OFFICE):
        raise ExtractionError(_old_office(file))
    if head.startswith(_TEXT_ONLY_IN_FORM) or not is_text:
        raise ExtractionError(_UNKNOWN, formats=[f.label for f in FORMATS])
    return _kind_of_text(head, file_extension(name))


def file_extension(name: str) -> str:
    """What comes after the last dot of the file called `name`, in lower case; the whole of a name without dots."""
    return PurePosixPath(name.replace("\\", "/")).name.lower().rpartition(".")[2]


_UNKNOWN = gettext_noop("Unsupported file type. Supported: %(formats)s.")


def _kind_of_zip(file: SeekableFile) -> str:
    """The kind by the members' names. It also runs in the process that takes uploads, so it bounds what is listed."""
    try:
        _check_directory(file)
        with zipfile.ZipFile(file) as package:
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
    raise ExtractionError(_UNKNOWN, formats=[f.label for f in FORMATS])


def _check_directory(file: SeekableFile) -> None:
    """Raises ExtractionError where the list of members is longer than any document's: `zipfile` reads all of it at once."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LAST_RECORD_BYTES))
    last = file.read(_LAST_RECORD_BYTES)
    found = last.rfind(b"PK\x05\x06")
    if found < 0 or len(last) < found + 22:
        raise zipfile.BadZipFile("its end is missing")
    # The size of the directory, which a larger archive (zip64) keeps elsewhere and gives as all ones here.
    if int.from_bytes(last[found + 12 : found + 16], "little") > _MOST_DIRECTORY_BYTES:
        raise ExtractionError(gettext_noop("This file holds too many parts to be a document."))


def _old_office(file: SeekableFile) -> str:
    """Why a file in the container of old Office programs is not read: newer ones use it for what they encrypt."""
    encrypted, before = "EncryptedPackage".encode("utf-16-le"), b""
    while piece := file.read(_HEAD_BYTES):
        if encrypted in before + piece:
            return gettext_noop("This document is protected by a password. Remove it and upload again.")
        before = piece[-len(encrypted) :]
    return gettext_noop("This file is in an old Office format. Save it as DOCX, PPTX, XLSX or PDF and upload that.")


def _kind_of_text(head: bytes, extension: str) -> str:
    kind = _TEXT_KINDS.get(extension, "text")
    if kind == "text" and _HTML.match(head.removeprefix(b"\xef\xbb\xbf")):
        return "html"
    if kind == "email" and not _HEADER_LINE.match(head):
        return "text"
    return kind
