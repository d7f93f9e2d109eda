"""Extract PDF: the text of each page, without text in images."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from itertools import count
from typing import Any, BinaryIO

from pypdf import PageObject, PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError
from pypdf.generic import ArrayObject, TextStringObject

from memory.documents.extraction.builder import TextBuilder, collapse_whitespace
from memory.documents.extraction.formats import ONLY_PICTURES
from memory.documents.extraction.pdf_visibility import PageVisibility
from memory.documents.extraction.result import ExtractionLimits
from memory.errors import ExtractionError, gettext_noop

_PROTECTED = gettext_noop("This PDF is protected by a password. Remove it and upload again.")
# Titles that programs set by default.
_NO_TITLE = re.compile(r"untitled.*|(?:microsoft (?:word|powerpoint|excel) - )?\S+\.\w{2,5}|\W*", re.IGNORECASE)
_MAX_TITLE_LENGTH = 200
_SHOWING = frozenset({b"Tj", b"TJ", b"'", b'"'})
# Ligatures are replaced because people type separate letters in a search.
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}


def read(file: BinaryIO, builder: TextBuilder, limits: ExtractionLimits) -> None:
    """Add the text of each page, marked with its number from 1 in the order of the file."""
    # pypdf logs each irregularity that it works around.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(file)
        # Many PDF files only have a password against changes and open with an empty one.
        if reader.is_encrypted and not reader.decrypt(""):
            raise ExtractionError(_PROTECTED)
        pages = len(reader.pages)
        if pages > limits.max_pages:
            sentence = gettext_noop("This PDF has %(count)s pages; at most %(most)s can be read. Upload it in parts.")
            raise ExtractionError(sentence, count=pages, most=limits.max_pages)
        for number, page in enumerate(reader.pages, start=1):
            builder.mark("page", str(number))
            _add_page(page, builder)
        builder.title = _title_of(reader)
    except (FileNotDecryptedError, DependencyError) as error:
        raise ExtractionError(_PROTECTED) from error
    except PyPdfError as error:
        raise ExtractionError(gettext_noop("This PDF is damaged and cannot be read.")) from error
    if builder.blank and not builder.hidden:
        raise ExtractionError(ONLY_PICTURES)


def _add_page(page: PageObject, builder: TextBuilder) -> None:
    """Add the visible text of the page, and conceal the invisible text."""
    box, resources = page.cropbox, page.get("/Resources")
    visibility = PageVisibility(
        (float(box.left), float(box.bottom), float(box.right), float(box.top)),
        resources.get_object() if resources is not None else {},
    )
    text = page.extract_text(visitor_operand_before=visibility.before, visitor_operand_after=visibility.after)
    hidden = visibility.hidden()
    if hidden:
        builder.conceal(_extract_only(page, lambda number: number in hidden))
        text = _extract_only(page, lambda number: number not in hidden)
    builder.block(text.translate(_LIGATURES))


def _extract_only(page: PageObject, is_wanted: Callable[[int], bool]) -> str:
    """Return the text of the selected operations, numbered among those that show text."""
    numbers = count()

    def blank(operator: bytes, operands: list[Any], *_: object) -> None:
        if operator in _SHOWING and not is_wanted(next(numbers)) and operands:
            operands[-1] = ArrayObject() if operator == b"TJ" else TextStringObject("")

    return page.extract_text(visitor_operand_before=blank)


def _title_of(reader: PdfReader) -> str:
    """Return the title in the PDF's properties, or ""."""
    value = reader.metadata.title if reader.metadata else None
    title = collapse_whitespace(value or "")
    return title if len(title) <= _MAX_TITLE_LENGTH and not _NO_TITLE.fullmatch(title) else ""
