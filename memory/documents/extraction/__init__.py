"""Extract the text of files of all formats, in a sandboxed child process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from memory.documents.extraction.formats import FORMATS, file_extension
from memory.documents.extraction.process import extract_in_subprocess
from memory.documents.extraction.result import (
    ExtractedText,
    ExtractionCancelledError,
    ExtractionLimits,
    Marker,
    location_label,
)

__all__ = [
    "FORMATS",
    "ExtractedText",
    "ExtractionCancelledError",
    "ExtractionLimits",
    "Marker",
    "location_label",
    "read",
]


def read(
    path: Path, *, name: str, limits: ExtractionLimits | None = None, stop: Callable[[], bool] | None = None
) -> ExtractedText:
    """Return the text of the file at `path`, which its owner called `name`.

    The content determines the format; the extension of `name` only distinguishes kinds of text. Text that a reader of
    the file does not see is left out, such as hidden and deleted text and navigation. `limits` defaults to
    `ExtractionLimits`. `stop` is called about five times per second and cancels the extraction by returning True.

    Blocks until done. Raises ExtractionError with a message for the person who uploaded the file,
    ExtractionCancelledError after `stop` returned True, and OSError if there is no file at `path`.
    """
    with path.open("rb") as file:
        return extract_in_subprocess(file, file_extension(name)[:20], limits or ExtractionLimits(), stop)
