"""Reads the text out of files, whatever their format, in a process of its own that may do nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memory.documents.extraction.formats import FORMATS, FileFormat, file_extension
from memory.documents.extraction.process import extract_in_subprocess
from memory.documents.extraction.result import (
    ExtractedText,
    ExtractionCancelledError,
    ExtractionLimits,
    Hidden,
    Marker,
    location_label,
)

__all__ = [
    "FORMATS",
    "ExtractedText",
    "ExtractionCancelledError",
    "ExtractionLimits",
    "FileFormat",
    "Hidden",
    "Marker",
    "location_label",
    "read",
]


def read(
    path: Path, *, name: str, limits: ExtractionLimits | None = None, stop: Callable[[], bool] | None = None
) -> ExtractedText:
    """The text of the file at `path`, which its owner called `name`.

    The content decides how it is read; the extension of `name` only tells one kind of text from another, and nothing
    else of it is used. What a reader of the file would not see is left out: what is hidden, deleted or says where to
    click. `limits` are those of `ExtractionLimits` unless given. `stop` is asked about five times a second whether to give up.

    Blocks until done. Raises ExtractionError with a sentence for the person who uploaded the file, ExtractionCancelledError after
    `stop` said so, and OSError where there is no file at `path`.
    """
    with path.open("rb") as file:
        return extract_in_subprocess(file, file_extension(name)[:20], limits or ExtractionLimits(), stop)
