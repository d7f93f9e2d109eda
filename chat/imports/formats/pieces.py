"""The objects of a JSON file one by one, so that no more of a file of any size is in memory than one conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from django.utils.translation import gettext as _

from memory.api import ExtractionError

# A conversation of a year of work has a few megabytes; this is what one may cost before it is refused.
LARGEST_PIECE = 100_000_000
_READ = 1_000_000
# Up to the next bracket that counts: whole strings are passed over, whatever stands in them. A quotation mark in its
# place begins a string that goes on in what is still unread.
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+(["\[\]{}]?)', re.DOTALL)


def pieces(stream: IO[bytes], *, largest: int = LARGEST_PIECE) -> Iterator[bytes]:
    """Each object of the array in `stream`, or each that stands there by itself, as its bytes.

    The bytes are balanced, not checked: one damaged object does not take the others along. Raises ExtractionError, after
    what came before, for an object of more than `largest` bytes, a file that breaks off, and one that is not UTF-8.
    """
    held, at = b"", 0
    start = -1  # of the present object, -1 between two
    depth = level = 0  # `level` is the depth at which objects are looked for: 1 inside of an array
    while True:
        begin = at if start < 0 else start
        held, at, start = held[begin:], at - begin, start if start < 0 else 0
        if len(held) > largest:
            raise _too_large(largest)
        # As much again as is held: what goes on for long is not looked at again for each further megabyte.
        more = stream.read(max(_READ, len(held)))
        if not more:
            break
        if not held and b"\x00" in more[:4]:
            raise ExtractionError(_("This is no JSON in UTF-8."))
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
        raise ExtractionError(_("The file breaks off in the middle; what came before that was read."))


def _too_large(largest: int) -> ExtractionError:
    sentence = _("One conversation in it has more than %(most)s MB; what came before was read.")
    return ExtractionError(sentence % {"most": largest // 1_000_000})
