"""A reader of the objects of a JSON file, which keeps at most one of them in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from django.utils.translation import gettext as _

from memory.api import ExtractionError

# Bytes; a conversation of a year of work has a few megabytes.
MAX_PIECE_BYTES = 100_000_000
_READ = 1_000_000
# Matches up to the next bracket outside of strings, or the quotation mark of a string that continues in unread data.
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{}]?)', re.DOTALL)


def pieces(stream: IO[bytes], *, largest: int = MAX_PIECE_BYTES) -> Iterator[bytes]:
    """Yield the bytes of each object in the array in `stream`, or of each top-level object.

    Only brackets are matched, so that a damaged object does not affect the others. Raises ExtractionError, after the
    objects before it, for an object of more than `largest` bytes, a truncated file, and one that is not UTF-8.
    """
    held, at = b"", 0
    start = -1  # of the current object; -1 between objects
    depth = level = 0  # `level` is the depth of the objects: 1 inside an array
    while True:
        begin = at if start < 0 else start
        held, at, start = held[begin:], at - begin, start if start < 0 else 0
        if len(held) > largest:
            raise _too_large(largest)
        # Read as much as is buffered already, so that a long object is not scanned again for each megabyte.
        more = stream.read(max(_READ, len(held)))
        if not more:
            break
        if not held and b"\x00" in more[:4]:
            raise ExtractionError(_("This is not JSON in UTF-8."))
        held += more
        while (found := _TO_BRACKET.match(held, at)) and (sign := found[1]) not in (b"", b'"'):
            at = found.end()
            if sign in b"{[":
                if sign == b"{" and depth == level:
                    start = at - 1
                elif sign == b"[" and depth == 0:
                    level = 1
                depth += 1
            elif depth:
                depth -= 1
                if depth == level and start >= 0:
                    if at - start > largest:
                        raise _too_large(largest)
                    yield held[start:at]
                    start = -1
                level = min(level, depth)
        at = found.start(1) if found else at
    if depth or start >= 0:
        raise ExtractionError(_("The file is cut off; what came before that was read."))


def _too_large(largest: int) -> ExtractionError:
    sentence = _("One conversation in it has more than %(most)s MB; what came before was read.")
    return ExtractionError(sentence % {"most": largest // 1_000_000})
