"""The objects of a JSON file one by one, so that no more of a file of any size is in memory than one conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

from memory.errors import CannotRead

# A conversation of a year of work has a few megabytes; this is what one may cost before it is refused.
LARGEST_PIECE = 100_000_000
_READ = 1_000_000
# A whole string, so that nothing inside of it counts; its end is missing where it goes on in what is still unread.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[\[\]{}]', re.DOTALL)
_QUOTE, _BRACE, _BRACKET, _OPENING = ord('"'), ord("{"), ord("["), b"{["


def pieces(stream: IO[bytes], *, largest: int = LARGEST_PIECE) -> Iterator[bytes]:
    """Each object of the array in `stream`, or each that stands there by itself, as its bytes.

    The bytes are balanced, not checked: one damaged object does not take the others along. Raises CannotRead, after
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
            raise CannotRead("This is no JSON in UTF-8.")
        held += more
        for token in _TOKEN.finditer(held, at):
            sign = held[token.start()]
            if sign == _QUOTE:
                if not token[1]:
                    at = token.start()
                    break
            elif sign in _OPENING:
                if sign == _BRACE and depth == level:
                    start = token.start()
                elif sign == _BRACKET and depth == 0:
                    level = 1
                depth += 1
            elif depth:
                depth -= 1
                if depth == level and start >= 0:
                    if token.end() - start > largest:
                        raise _too_large(largest)
                    yield held[start : token.end()]
                    start = -1
                level = min(level, depth)
            at = token.end()
        else:
            at = len(held)
    if depth or start >= 0:
        raise CannotRead("The file breaks off in the middle; what came before that was read.")


def _too_large(largest: int) -> CannotRead:
    return CannotRead(f"One conversation in it has more than {largest // 1_000_000} MB; what came before was read.")
