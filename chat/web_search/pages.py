"""Reads found pages through the guarded client: public addresses, usual ports, HTML and plain text, within limits."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from urllib.parse import urljoin

import httpx2
from django.conf import settings

from chat.errors import ToolServerError
from chat.tools.guarded_http import new_client
from chat.web_search.robots import MAX_REDIRECTS, USER_AGENT, may_read
from chat.web_search.searxng import is_web_address
from memory.api import extract_page_text

log = logging.getLogger(__name__)

# Seconds for one page, and for all of them. With SearXNG's they are below the time without a heartbeat that ends an answer.
_PAGE_TIMEOUT, _TIMEOUT = 5.0, 7.0
_READER_SECONDS = 5
_MAX_BYTES = 1_000_000
# The names say to the reader which kind of text it is.
_TYPES = {"text/html": "page.html", "text/plain": "page.txt"}


async def read_pages(addresses: Sequence[str]) -> dict[str, str]:
    """Return the texts of those of the pages that may be read and are read in time, by their addresses."""
    async with new_client(
        "",
        timeout=_PAGE_TIMEOUT,
        internal_hosts=settings.CATO.web_search.internal_hosts,
        max_bytes=_MAX_BYTES,
        only_usual_ports=True,
    ) as client:
        client.headers["User-Agent"] = USER_AGENT
        tasks = {address: asyncio.ensure_future(_read_page(client, address)) for address in dict.fromkeys(addresses)}
        try:
            if tasks:
                await asyncio.wait(tasks.values(), timeout=_TIMEOUT)
        finally:
            for task in tasks.values():
                task.cancel()
            results = await asyncio.gather(*tasks.values(), return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            log.error("a page could not be read", exc_info=result)
    return {address: text for address, text in zip(tasks, results, strict=True) if isinstance(text, str) and text}


async def _read_page(client: httpx2.AsyncClient, address: str) -> str:
    """Return the visible text of a page, "" if it cannot or may not be read."""
    try:
        async with asyncio.timeout(_PAGE_TIMEOUT):
            content, name, charset = await _fetch(client, address)
    except (TimeoutError, ToolServerError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        log.info("a page was not read: %s", type(error).__name__)
        return ""
    if not content:
        return ""
    extract = partial(extract_page_text, content, name=name, charset=charset, seconds=_READER_SECONDS)
    return await asyncio.to_thread(extract)


async def _fetch(client: httpx2.AsyncClient, address: str) -> tuple[bytes, str, str]:
    """Return the content of a page, a file name of its kind and its encoding, "" if its header names none.

    The content is b"" if it is of another kind or may not be read.

    Each address of a chain of redirects is checked like the first one.
    """
    for _redirect in range(MAX_REDIRECTS + 1):
        if not is_web_address(address) or not await may_read(client, address):
            break
        async with client.stream("GET", address, headers={"Accept": ", ".join(_TYPES)}) as response:
            if response.is_redirect:
                address = urljoin(address, response.headers.get("location", ""))
                continue
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != httpx2.codes.OK or media_type not in _TYPES:
                break
            return await response.aread(), _TYPES[media_type], response.charset_encoding or ""
    return b"", "", ""
