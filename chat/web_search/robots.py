"""What robots.txt of a site allows Cato to read, kept in the cache for a day."""

from __future__ import annotations

import asyncio
import hashlib
from urllib.parse import urljoin, urlsplit

import httpx2
from protego import Protego

from chat import cached_values
from chat.errors import ToolServerError
from chat.web_search.searxng import is_web_address

USER_AGENT = "Cato"
MAX_REDIRECTS = 3
_KEPT_SECONDS = 24 * 3600
_MAX_CHARS = 100_000


async def may_read(client: httpx2.AsyncClient, address: str) -> bool:
    """Return whether the robots.txt of the address's site allows Cato to read it, read with the guarded client.

    A site without one allows everything. One whose robots.txt cannot be reached allows nothing, as RFC 9309 says.
    """
    parts = urlsplit(address)
    origin = f"{parts.scheme}://{parts.netloc}"
    rules = await asyncio.to_thread(cached_values.kept, _cache_key(origin), str)
    if rules is None:
        rules = await _read(client, f"{origin}/robots.txt")
        if rules is None:
            return False
        await asyncio.to_thread(cached_values.keep, _cache_key(origin), rules, _KEPT_SECONDS)
    # The parser of Python's library takes the first rule that matches instead of the longest, and knows no wildcards.
    is_allowed: bool = Protego.parse(rules).can_fetch(address, USER_AGENT)
    return is_allowed


async def _read(client: httpx2.AsyncClient, address: str) -> str | None:
    """Return the text of a robots.txt, "" if there is none; None if it cannot be reached."""
    try:
        for _redirect in range(MAX_REDIRECTS + 1):
            if not is_web_address(address):
                return None
            response = await client.get(address)
            if not response.is_redirect:
                break
            address = urljoin(address, response.headers.get("location", ""))
    except (ToolServerError, httpx2.HTTPError, httpx2.InvalidURL, ValueError):
        return None
    if response.is_success:
        return response.text[:_MAX_CHARS].removeprefix("\ufeff")
    return "" if response.is_client_error else None


def _cache_key(origin: str) -> str:
    """Return the key of the cache, a hash: caches show their keys, which would say what people search for."""
    return "robots:" + hashlib.sha256(origin.encode("utf-8", "replace")).hexdigest()
