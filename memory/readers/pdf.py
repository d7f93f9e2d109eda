"""PDF: the text of each page, as far as it is text and not a picture of it."""

from __future__ import annotations

import logging
import re
from typing import BinaryIO

from pypdf import PdfReader
from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

from memory.errors import CannotRead, gettext_noop
from memory.readers.draft import Draft, one_line
from memory.readers.reading import Limits

_PROTECTED = gettext_noop("This PDF is protected by a password. Remove it and upload again.")
# What programs put there when nobody gave a title.
_NO_TITLE = re.compile(r"untitled.*|(?:microsoft (?:word|powerpoint|excel) - )?\S+\.\w{2,5}|\W*", re.IGNORECASE)
_LONGEST_TITLE = 200
# Fonts have these as one glyph; nobody searches for them.
_LIGATURES = {0xFB00: "ff", 0xFB01: "fi", 0xFB02: "fl", 0xFB03: "ffi", 0xFB04: "ffl", 0xFB05: "st", 0xFB06: "st"}


def read(file: BinaryIO, draft: Draft, limits: Limits) -> None:
    """Add the text of each page, marked with its number, from 1 in the order of the file."""
    # pypdf reports each oddity it works around; here nobody listens.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(file)
        # Many a PDF has a password for changing it only, and opens with an empty one.
        if reader.is_encrypted and not reader.decrypt(""):
            raise CannotRead(_PROTECTED)
        count = len(reader.pages)
        if count > limits.max_pages:
            sentence = gettext_noop("This PDF has %(count)s pages; at most %(most)s can be read. Upload it in parts.")
            raise CannotRead(sentence, count=count, most=limits.max_pages)
        for number, page in enumerate(reader.pages, start=1):
            draft.mark("page", str(number))
            draft.block(page.extract_text().translate(_LIGATURES))
        draft.title = _title_of(reader)
    except (FileNotDecryptedError, DependencyError) as error:
        raise CannotRead(_PROTECTED) from error
    except PyPdfError as error:
        raise CannotRead(gettext_noop("This file is damaged: it does not hold together as a PDF.")) from error
    if draft.blank:
        sentence = gettext_noop(
            "This PDF has no text in it, only pictures of pages. Run it through text recognition (OCR) first."
        )
        raise CannotRead(sentence)


def _title_of(reader: PdfReader) -> str:
    """The title among the PDF's properties; "" where it is none."""
    said = reader.metadata.title if reader.metadata else None
    title = one_line(said or "")
    return title if len(title) <= _LONGEST_TITLE and not _NO_TITLE.fullmatch(title) else ""
