"""Addresses of the authorization server and of clients: what is offered where, and which redirect addresses are allowed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.http import HttpRequest

RESOURCE_PATH = "/mcp"
METADATA_PATH = "/.well-known/oauth-protected-resource"
MAX_REDIRECT_URI_LENGTH = 1000
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Of these, browsers or systems do something else with an address than to open the app that registered it.
_REFUSED_SCHEMES = (
    "about",
    "blob",
    "data",
    "file",
    "filesystem",
    "ftp",
    "javascript",
    "mailto",
    "vbscript",
    "ws",
    "wss",
)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")


def origin(scheme: str, host: str) -> str:
    """Return the address of this Cato for clients: the configured one, or that of the request."""
    public = urlsplit(settings.CATO.server.public_url or "")
    return f"{public.scheme}://{public.netloc}" if public.netloc else f"{scheme}://{host}"


def origin_of(request: HttpRequest) -> str:
    """Return the address of this Cato for the client that sends this request."""
    return origin(request.scheme or "http", request.get_host())


def is_offered_at(address: str) -> bool:
    """Return whether apps can connect at this address: codes and tokens need https, except on this machine."""
    parts = urlsplit(address)
    return settings.CATO.api.enabled and (parts.scheme == "https" or parts.hostname in _LOOPBACK)


def is_resource(requested: str, at: str) -> bool:
    """Return whether a `resource` parameter names /mcp of the Cato at this address."""
    parts = urlsplit(requested)
    named = f"{parts.scheme.lower()}://{parts.netloc.lower()}{parts.path.rstrip('/')}"
    return named == f"{at.lower()}{RESOURCE_PATH}" and not parts.query and not parts.fragment


def is_allowed(redirect_uri: str) -> bool:
    """Return whether a client may register this redirect address.

    It is https, http on the person's own machine, or a scheme of an app's own, without fragment and credentials.
    """
    parts = _split(redirect_uri)
    if parts is None or len(redirect_uri) > MAX_REDIRECT_URI_LENGTH or not redirect_uri.isascii():
        return False
    if (
        parts.fragment
        or "#" in redirect_uri
        or parts.username is not None
        or re.search(r"[\s\x00-\x1f\"'<>\\;,]", redirect_uri)
    ):
        return False
    if parts.scheme in ("https", "http"):
        return bool(parts.hostname) and (parts.scheme == "https" or parts.hostname in _LOOPBACK)
    return bool(_SCHEME.fullmatch(parts.scheme)) and parts.scheme not in _REFUSED_SCHEMES


def is_registered(redirect_uri: str, registered: Iterable[str]) -> bool:
    """Return whether the address is one of the registered ones. On the person's own machine, the port may differ."""
    if not is_allowed(redirect_uri):
        return False
    return any(redirect_uri == uri or _is_same_but_for_port(redirect_uri, uri) for uri in registered)


def is_local(redirect_uri: str) -> bool:
    """Return whether the address is on the machine of the browser."""
    parts = urlsplit(redirect_uri)
    return parts.scheme == "http" and parts.hostname in _LOOPBACK


def host_of(redirect_uri: str) -> str:
    """Return the host of a redirect address, or the scheme that opens an app."""
    parts = urlsplit(redirect_uri)
    return (parts.hostname or "") if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def form_target(redirect_uri: str) -> str:
    """Return the source expression that allows a form to redirect to the address (`form-action`)."""
    parts = urlsplit(redirect_uri)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _is_same_but_for_port(one: str, other: str) -> bool:
    if not (is_local(one) and is_local(other)):
        return False
    parts, others = urlsplit(one), urlsplit(other)
    return (parts.hostname, parts.path, parts.query) == (others.hostname, others.path, others.query)


def _split(uri: str) -> SplitResult | None:
    try:
        parts = urlsplit(uri)
        parts.port  # noqa: B018  (raises for an invalid port)
    except ValueError:
        return None
    return parts
