"""Stream a response whose content is produced with the database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async


async def iterate_in_thread(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks, each produced in a thread after the previous one was sent.

    Under ASGI, Django reads an ordinary iterator to its end before it sends anything.
    """
    next_chunk = sync_to_async(lambda: next(chunks, None))
    while (chunk := await next_chunk()) is not None:
        yield chunk
