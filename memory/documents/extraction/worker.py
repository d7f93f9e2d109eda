"""The process that extracts one file: it restricts itself, reads standard input and writes to standard output.

To debug the extraction of a file, run it with a pipe, since it may not write files: `python -m
memory.documents.extraction.worker '{"name": "a.pdf"}' < a.pdf | cat`.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module
from typing import BinaryIO

from memory.documents.extraction.builder import TextBuilder, normalise_text
from memory.documents.extraction.formats import detect_format
from memory.documents.extraction.protocol import OUT_OF_MEMORY, encode_line, encode_result
from memory.documents.extraction.result import ExtractedText, ExtractionLimits
from memory.documents.extraction.sandbox import confine
from memory.errors import ExtractionError, Fact

# Module and function of each kind; imported when the kind is known, since each costs time and memory.
READERS = {
    "text": ("plain", "read"),
    "code": ("plain", "read"),
    "markdown": ("plain", "read_markdown"),
    "html": ("html", "read"),
    "pdf": ("pdf", "read"),
    "docx": ("docx", "read"),
    "pptx": ("pptx", "read"),
    "xlsx": ("xlsx", "read"),
    "csv": ("csv", "read"),
    "epub": ("epub", "read"),
    "email": ("mail", "read"),
}


def main() -> None:
    """Extract the file on standard input, which must be seekable, with the options in the first argument."""
    options = json.loads(sys.argv[1])
    limits = ExtractionLimits(**options.get("limits", {}))
    # Output of libraries must not get into the result.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    confine(limits)
    try:
        kind = detect_format(sys.stdin.buffer, options["name"])
        output.write(encode_line({"kind": kind}))
        # First, so that the parent can name the kind in every error.
        output.flush()
        output.writelines(encode_result(_read(sys.stdin.buffer, kind, limits)))
    except ExtractionError as error:
        output.write(
            encode_line(
                {
                    "cannot": normalise_text(error.words),
                    "facts": {name: _tidy(fact) for name, fact in error.facts.items()},
                }
            )
        )
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    output.flush()
    # Exit without freeing every object.
    os._exit(0)


def _tidy(fact: Fact) -> Fact:
    return normalise_text(fact) if isinstance(fact, str) else fact


def _read(file: BinaryIO, kind: str, limits: ExtractionLimits) -> ExtractedText:
    module, function = READERS[kind]
    builder = TextBuilder(limits.max_characters)
    getattr(import_module(f"memory.documents.extraction.{module}"), function)(file, builder, limits)
    return builder.finish(kind)


if __name__ == "__main__":
    main()
