"""The search of the web before an answer: at the same time as recall, with what the author typed as its query."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from chat.answers.stream import AnswerStream
from chat.errors import WebSearchError
from chat.models import Turn
from chat.web_search.records import WebSearch, WebSource, query_of, searches_web
from memory.api import RateLimitedError, choose_passages, clean_text, count_web_search

# Of the pages that are found, the first ones are read; the others have their snippets.
_MAX_READ = 3
# Of the text of one page. Choosing passages of a million can take seconds, in which an answer has no heartbeat.
_MAX_CHARS = 100_000
_MAX_TOKENS = 450  # of the passages of one page; about two of 150 words


async def search_for_turn(stream: AnswerStream) -> WebSearch | None:
    """Search the web if the turn's thread says so; return None if it does not, or if the answer is stopped meanwhile.

    A failure is part of the result and never prevents the answer.
    """
    turn = stream.job.turn
    if turn.answer:
        # The partial text of an answer that is resumed cites these sources.
        return WebSearch.of(turn)
    if not searches_web(turn):
        return None
    searching = asyncio.ensure_future(_search(turn))
    stopping = asyncio.ensure_future(stream.stopped.wait())
    try:
        await asyncio.wait({searching, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return searching.result() if searching.done() else None
    finally:
        searching.cancel()
        stopping.cancel()
        await asyncio.gather(searching, stopping, return_exceptions=True)


async def _search(turn: Turn) -> WebSearch | None:
    # Only where the web is searched does the process load the HTTP client.
    from chat.web_search.pages import read_pages
    from chat.web_search.searxng import find_pages

    query = query_of(turn.message)
    if not query:
        return None
    try:
        await asyncio.to_thread(count_web_search, turn.author_id)
        found = await find_pages(query)
    except (RateLimitedError, WebSearchError) as error:
        return WebSearch(query, error=str(error))
    texts = await read_pages([source.address for source in found[:_MAX_READ]])
    return WebSearch(query, tuple(await asyncio.to_thread(_with_passages, found, texts, query)))


def _with_passages(found: Sequence[WebSource], texts: Mapping[str, str], query: str) -> list[WebSource]:
    """Return the sources with the passages of their pages that fit the query best, instead of their snippets."""
    return [
        replace(source, text=choose_passages(text[:_MAX_CHARS], question=query, max_tokens=_MAX_TOKENS))
        if (text := clean_text(texts.get(source.address, "")).strip())
        else source
        for source in found
    ]
