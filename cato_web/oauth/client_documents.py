"""Client ID metadata documents: the ID of an app is the address of a document that describes it.

After the draft "OAuth Client ID Metadata Document". An address is fetched only for a signed-in person who connects the app,
by the guarded client: from public hosts at the usual port, without redirects, and at most once an hour.
"""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from urllib.parse import urlsplit

import httpx2
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.oauth import grants
from cato_web.oauth.addresses import is_allowed
from cato_web.oauth.models import OAuthClient
from cato_web.oauth.registration import RegistrationError, check_number_of_clients, parse_metadata
from chat.errors import ToolServerError
from chat.tools.guarded_http import new_client
from memory.api import InvalidInputError, RateLimitedError, is_within_limit

_MAX_BYTES = 20_000
_TIMEOUT = 5.0  # seconds
_FRESH = timedelta(hours=1)
_PER_HOUR = 30  # for one person
_TYPES = ("application/json", "application/cimd+json")


class _DocumentError(Exception):
    """The document cannot be used; the message is a reason, after a colon."""


def is_document_address(client_id: str) -> bool:
    """Return whether the ID of a client is an https address with a path, and without dot segments, escapes and query."""
    if not client_id.startswith("https://") or len(client_id) > OAuthClient.MAX_ID_LENGTH or not is_allowed(client_id):
        return False
    parts = urlsplit(client_id)
    segments = parts.path.split("/")[1:]
    return (
        bool("".join(segments)) and not {".", ".."} & set(segments) and "?" not in client_id and "%" not in parts.path
    )


def update_client(client_id: str, *, person_id: uuid.UUID) -> None:
    """Create or update the client that the document at `client_id` describes, unless it was read within the last hour.

    Raises InvalidInputError if the document cannot be used, and RateLimitedError.
    """
    known = OAuthClient.objects.filter(client_id=client_id).first()
    if known is not None and known.read_at is not None and known.read_at > timezone.now() - _FRESH:
        return
    if not is_within_limit(f"oauth-document:{person_id}", _PER_HOUR, 3600):
        raise RateLimitedError(_("Too many apps. Try again in an hour."))
    grants.delete_unused()
    if known is None:
        check_number_of_clients()
    try:
        name, redirect_uris = _read_document(asyncio.run(_fetch(client_id)), client_id)
    except _DocumentError as error:
        facts = {"host": urlsplit(client_id).hostname, "reason": error}
        sentence = _("This app cannot be connected, because its description at %(host)s cannot be used: %(reason)s")
        raise InvalidInputError(sentence % facts) from error
    fields = {"auth_method": "none", "name": name, "redirect_uris": redirect_uris, "read_at": timezone.now()}
    OAuthClient.objects.update_or_create(client_id=client_id, defaults=fields)


def _read_document(body: bytes, client_id: str) -> tuple[str, list[str]]:
    """Return the name and the redirect addresses. Raises _DocumentError."""
    try:
        metadata = parse_metadata(body)
    except RegistrationError as error:
        raise _DocumentError(str(error)) from error
    if metadata.client_id != client_id:
        raise _DocumentError("client_id is not its address.")
    if metadata.client_secret is not None or (metadata.token_endpoint_auth_method or "none") != "none":
        raise _DocumentError("token_endpoint_auth_method is not none.")
    return metadata.display_name, metadata.redirect_uris


async def _fetch(address: str) -> bytes:
    """Return the document. Raises _DocumentError."""
    try:
        async with (
            asyncio.timeout(_TIMEOUT),
            new_client("", timeout=_TIMEOUT, internal_hosts=(), max_bytes=_MAX_BYTES, only_usual_ports=True) as client,
            client.stream("GET", address, headers={"Accept": "application/json", "User-Agent": "Cato"}) as response,
        ):
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != httpx2.codes.OK or media_type not in _TYPES:
                raise _DocumentError(f"HTTP {response.status_code}, {media_type[:40]}.")
            return await response.aread()
    except TimeoutError as error:
        raise _DocumentError(_("It does not answer in time.")) from error
    except ToolServerError as error:
        raise _DocumentError(str(error)) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise _DocumentError(f"{type(error).__name__}.") from error
