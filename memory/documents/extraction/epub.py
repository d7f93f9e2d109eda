"""Extract e-books (EPUB): pages in reading order, with the chapter names of the table of contents."""

from __future__ import annotations

import posixpath
import zipfile
from html.parser import HTMLParser
from typing import BinaryIO

from memory.documents.extraction.builder import TextBuilder, collapse_whitespace
from memory.documents.extraction.encoding import declared_in, decode
from memory.documents.extraction.html import add_page
from memory.documents.extraction.result import ExtractionLimits
from memory.documents.extraction.xml_stream import XmlHandler
from memory.documents.extraction.zip_package import FirstText, open_archive, parse_part, resolve
from memory.errors import ExtractionError, gettext_noop

_PAGES = frozenset({"application/xhtml+xml", "text/html", "application/x-dtbook+xml"})


def read(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add the book's pages, with markers for chapters and headings."""
    with open_archive(file) as package:
        container = _Container()
        parse_part(package, "META-INF/container.xml", container)
        book, title = _Book(posixpath.dirname(container.book)), FirstText("title")
        parse_part(package, container.book, book)
        parse_part(package, container.book, title)
        pages = [part for name in book.spine if (part := book.pages.get(name))]
        if "META-INF/encryption.xml" in package.NameToInfo:
            locked = _Encrypted()
            parse_part(package, "META-INF/encryption.xml", locked)
            # Fonts are often obfuscated; pages are encrypted only by copy protection.
            if locked.parts & set(pages):
                raise ExtractionError(
                    gettext_noop("This e-book is copy-protected. Only books without copy protection can be read.")
                )
        names = _chapters(package, book)
        for part in pages:
            if part in names:
                builder.chapter(names[part])
            data = package.read(part)
            add_page(decode(data, declared=declared_in(data)), builder)
        builder.title = collapse_whitespace(title.words)


def _chapters(package: zipfile.ZipFile, book: _Book) -> dict[str, str]:
    """Return the name of the first chapter on each page, by the name of the page's part."""
    if book.contents in package.NameToInfo:
        data = package.read(book.contents)
        links = _Links(posixpath.dirname(book.contents))
        links.feed(decode(data, declared=declared_in(data)))
        return links.names
    if book.old_contents in package.NameToInfo:
        points = _NavPoints(posixpath.dirname(book.old_contents))
        parse_part(package, book.old_contents, points)
        return points.names
    return {}


class _Container(XmlHandler):
    """Handle the container file, which names the package document."""

    book = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "rootfile":
            self.book = self.book or attributes.get("full-path", "")


class _Book(XmlHandler):
    """Handle the package document: pages by id, reading order, and tables of contents."""

    def __init__(self, folder: str) -> None:
        self.pages: dict[str, str] = {}
        self.spine: list[str] = []
        self.contents = ""
        self.old_contents = ""
        self._folder = folder

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "item":
            self._add_item(attributes)
        elif name == "itemref":
            self.spine.append(attributes.get("idref", ""))

    def _add_item(self, attributes: dict[str, str]) -> None:
        part, media_type = resolve(self._folder, attributes.get("href", "")), attributes.get("media-type", "")
        if "nav" in attributes.get("properties", "").split():
            self.contents = part
        elif media_type == "application/x-dtbncx+xml":
            self.old_contents = part
        elif media_type in _PAGES:
            self.pages[attributes.get("id", "")] = part


class _Encrypted(XmlHandler):
    """Handle the list of encrypted parts."""

    def __init__(self) -> None:
        self.parts: set[str] = set()

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "CipherReference":
            self.parts.add(resolve("", attributes.get("URI", "")))


class _NavPoints(XmlHandler):
    """Handle the table of contents of older books (NCX)."""

    def __init__(self, folder: str) -> None:
        self.names: dict[str, str] = {}
        self._folder = folder
        self._words: list[str] = []
        self._in_text = False

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self._in_text = name == "text"
        if name == "text":
            self._words = []
        elif name == "content" and (label := collapse_whitespace("".join(self._words))):
            self.names.setdefault(resolve(self._folder, attributes.get("src", "")), label)

    def end(self, name: str) -> None:
        self._in_text = False

    def text(self, text: str) -> None:
        if self._in_text:
            self._words.append(text)


class _Links(HTMLParser):
    """Collect the links of a table of contents in HTML: targets and texts."""

    def __init__(self, folder: str) -> None:
        super().__init__(convert_charrefs=True)
        self.names: dict[str, str] = {}
        self._folder = folder
        # Types of the open `nav` elements; a book may also list its pages and landmarks.
        self._nav = ""
        self._href = ""
        self._words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "nav":
            self._nav = dict(attrs).get("epub:type") or "toc"
        elif tag == "a" and self._nav == "toc":
            self._href, self._words = dict(attrs).get("href") or "", []

    def handle_endtag(self, tag: str) -> None:
        if tag == "nav":
            self._nav = ""
        elif tag == "a" and self._href:
            if label := collapse_whitespace("".join(self._words)):
                self.names.setdefault(resolve(self._folder, self._href), label)
            self._href = ""

    def handle_data(self, data: str) -> None:
        if self._href:
            self._words.append(data)
