"""Asks a SearXNG for pages, over its JSON API.

Its address is the administrator's and can be inside the network, so the guarded client may connect to this host alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import httpx2
from django.conf import settings
from django.utils.translation import gettext as _

from chat.errors import ToolServerError, WebSearchError
from chat.tools.guarded_http import new_client
from chat.web_search.records import WebSource
from memory.api import clean_text

TIMEOUT = 5.0  # seconds
MAX_RESULTS = 5
_MAX_BYTES = 2_000_000
_MAX_TITLE, _MAX_ADDRESS, _MAX_SNIPPET = 200, 2_000, 500  # characters


async def find_pages(query: str) -> list[WebSource]:
    """Return the first pages for a query, with snippets as their texts. Raises WebSearchError with the reason."""
    url = settings.CATO.web_search.searxng_url or ""
    host = _host_with_port(url)
    parameters = {"q": query, "format": "json"}
    try:
        async with (
            asyncio.timeout(TIMEOUT),
            new_client("", timeout=TIMEOUT, internal_hosts=[host], max_bytes=_MAX_BYTES) as client,
        ):
            response = await client.get(f"{url.rstrip('/')}/search", params=parameters, headers={"User-Agent": "Cato"})
    except (TimeoutError, httpx2.TimeoutException) as error:
        raise WebSearchError(_("SearXNG did not answer in time. Try again.")) from error
    except (ToolServerError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise WebSearchError(_("SearXNG cannot be reached. Ask an administrator to check its address.")) from error
    _check_status(response.status_code)
    return list(_sources(_results(response.content)))[:MAX_RESULTS]


def _check_status(status: int) -> None:
    """Raise WebSearchError for a status other than 200."""
    if status == httpx2.codes.FORBIDDEN:
        sentence = _(
            "SearXNG refuses JSON. An administrator allows it in its settings.yml, with “json” in search.formats."
        )
        raise WebSearchError(sentence)
    if status == httpx2.codes.TOO_MANY_REQUESTS:
        raise WebSearchError(_("SearXNG limits its requests. Try again later, or ask an administrator."))
    if status != httpx2.codes.OK:
        raise WebSearchError(_("SearXNG answered with the status %(status)s.") % {"status": status})


def _results(content: bytes) -> list[Any]:
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        answer = None
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise WebSearchError(_("the answer of SearXNG cannot be read. Ask an administrator to check its address."))
    return results


def _sources(results: list[Any]) -> Iterator[WebSource]:
    """Yield a source for each result that is a page on the web, and each page once."""
    seen = set()
    for result in results:
        address = _text(result, "url") if isinstance(result, dict) else ""
        if address in seen or not is_web_address(address):
            continue
        seen.add(address)
        yield WebSource(
            title=_text(result, "title")[:_MAX_TITLE] or address,
            address=address,
            text=_text(result, "content")[:_MAX_SNIPPET],
            published=_date(_text(result, "publishedDate")),
        )


def _text(result: dict[str, Any], name: str) -> str:
    value = result.get(name)
    return " ".join(clean_text(value).split()) if isinstance(value, str) else ""


def _date(text: str) -> str:
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return ""


def is_web_address(address: str) -> bool:
    """Return whether this is the address of a page: of http or https, with a host and without a name or password."""
    try:
        parts = urlsplit(address)
        has_host = bool(parts.hostname) and (parts.port or 80) > 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and has_host and "@" not in parts.netloc and len(address) <= _MAX_ADDRESS


def _host_with_port(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
