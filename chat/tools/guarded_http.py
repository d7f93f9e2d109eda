"""HTTP connections to hosts that people or pages name: only to public addresses, unless the configuration names the host.

A name is resolved once, and the connection is made to the address that was checked. So a name that resolves to another
address a moment later does not lead into the network.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections import defaultdict
from collections.abc import Collection
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2
from django.utils.translation import gettext as _

from chat.bounded_response import limit_body
from chat.errors import ToolServerError

_MAX_RESPONSE_BYTES = 8_000_000
_GLOBAL_IPV6 = ipaddress.ip_network("2000::/3")


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to public addresses and to `internal_hosts` (names, or names with a port).

    A response has at most `max_bytes`. `only_usual_ports`: public addresses at 80 for http and 443 for https only.
    """

    def __init__(
        self,
        internal_hosts: Collection[str],
        *,
        max_bytes: int = _MAX_RESPONSE_BYTES,
        only_usual_ports: bool = False,
    ) -> None:
        self._internal_hosts = frozenset(internal_hosts)
        self._max_bytes = max_bytes
        self._only_usual_ports = only_usual_ports
        # Each host has connections of its own: one that was made to an address has the certificate of one name only.
        context = httpx2.create_ssl_context(trust_env=False)
        self._transports: defaultdict[str, httpx2.AsyncHTTPTransport] = defaultdict(
            partial(httpx2.AsyncHTTPTransport, verify=context, trust_env=False)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises ToolServerError for an address that is not allowed, and httpx2's errors."""
        host = request.url.host
        if not {host, f"{host}:{_port(request.url)}"} & self._internal_hosts:
            # A URL does not name the usual port of its scheme.
            if self._only_usual_ports and request.url.port is not None:
                raise ToolServerError(_("%(host)s is not at the usual port.") % {"host": host})
            address = await _public_address(host, _port(request.url))
            # The certificate is checked for the name, and so is the header "Host", which the request has already.
            request.extensions = {**request.extensions, "sni_hostname": host}
            request.url = request.url.copy_with(host=address)
        response = await self._transports[host].handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise ToolServerError(_("%(host)s sends a compressed response, which is not accepted.") % {"host": host})
        limit_body(
            response, self._max_bytes, ToolServerError(_("The response of %(host)s is too long.") % {"host": host})
        )
        return response

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in self._transports.values():
            await transport.aclose()


def new_client(
    token: str,
    *,
    timeout: float,
    internal_hosts: Collection[str],
    max_bytes: int = _MAX_RESPONSE_BYTES,
    only_usual_ports: bool = False,
) -> httpx2.AsyncClient:
    """Return a client without cookies that sends `token`, if there is one; `timeout` is in seconds.

    The other arguments are those of `GuardedTransport`.
    """
    headers = {"Accept-Encoding": "identity"} | ({"Authorization": f"Bearer {token}"} if token else {})
    return httpx2.AsyncClient(
        transport=GuardedTransport(internal_hosts, max_bytes=max_bytes, only_usual_ports=only_usual_ports),
        headers=headers,
        timeout=timeout,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        trust_env=False,
    )


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the internet, also where it is written as IPv6 in one of several ways."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv4Address):
        return ip.is_global and not ip.is_multicast
    if ip.ipv4_mapped:
        return is_public(str(ip.ipv4_mapped))
    return ip in _GLOBAL_IPV6 and ip.is_global and not ip.sixtofour and not ip.teredo


async def _public_address(host: str, port: int) -> str:
    """Resolve a host. Raises ToolServerError if it has an address that is not public, or none."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ToolServerError(_("The host %(host)s is not known.") % {"host": host}) from error
    addresses = [str(entry[4][0]) for entry in found]
    if not addresses or not all(map(is_public, addresses)):
        sentence = _(
            "%(host)s is inside the network. To allow it, name it in tools.internal_hosts of the configuration."
        )
        raise ToolServerError(sentence % {"host": host})
    return addresses[0]


def _port(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)
