"""Extract the text of a file or page at once, for the message that it is attached to or was found for."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from django.conf import settings
from django.core.files import File
from django.utils.translation import gettext as _

from memory.documents import extraction
from memory.documents.extraction import ExtractionLimits
from memory.documents.extraction.encoding import decode, legacy_encoding
from memory.documents.extraction.formats import ONLY_PICTURES, UNSUPPORTED
from memory.documents.extraction_runs import extraction_limits
from memory.documents.uploads import validate_size
from memory.errors import ExtractionError, InvalidInputError
from memory.utils.formatting import error_text
from memory.utils.stored_files import local_copy

# What passages are chosen from. The index has the whole file.
MAX_EXTRACTED_CHARACTERS = 1_000_000
# Extraction takes a processor each; further uploads wait, and pages stay fast.
_extractions = threading.BoundedSemaphore(2)


@dataclass(frozen=True, slots=True)
class AttachedText:
    """The beginning of a file's text, and the number of its pages or slides, 0 if it has none or they are unknown."""

    text: str
    pages: int = 0


def extract_text(file: File[bytes], *, name: str) -> AttachedText:
    """Return the beginning of the file's text, "" if it is a PDF that has only pictures of pages.

    Raises InvalidInputError if it is too large, empty, unsupported or otherwise unreadable.

    Blocks until a child process has read the file.
    """
    validate_size(name, file.size)
    try:
        with local_copy(file.chunks()) as path, _extractions:
            extracted = extraction.read(path, name=name, limits=extraction_limits())
    except ExtractionError as error:
        if error.words == ONLY_PICTURES:
            return AttachedText("")
        reason = _("Unsupported file type") if error.words == UNSUPPORTED else error_text(error)
        raise InvalidInputError(f"{name}: {reason}") from error
    finally:
        file.seek(0)
    if not extracted.text.strip():
        raise InvalidInputError(_("%(name)s has no text.") % {"name": name})
    return AttachedText(extracted.text[:MAX_EXTRACTED_CHARACTERS], extracted.pages)


def extract_page_text(content: bytes, *, name: str, charset: str, seconds: int) -> str:
    """Return the visible text of a page of the web, "" if it has none or cannot be read within `seconds`.

    `name` is "page.html" or "page.txt"; `charset` is the encoding that its header names, or "". Blocks until a child
    process has read the page.
    """
    limits = ExtractionLimits(
        memory_mb=settings.CATO.documents.reader_memory_mb,
        processor_seconds=seconds,
        wall_seconds=seconds,
        max_characters=MAX_EXTRACTED_CHARACTERS,
    )
    if legacy_encoding(charset):
        content = decode(content, declared=charset).encode()
    try:
        with local_copy([content]) as path:
            return extraction.read(path, name=name, limits=limits).text
    except ExtractionError:
        return ""
