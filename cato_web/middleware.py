"""Middleware for compression, the login, caching and the origin of sockets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

_TEXTS = ("text/", "application/json")
# gzip would buffer events.
_EVENTS = "text/event-stream"
_WRONG_ORIGIN = 4403


class CompressionMiddleware(GZipMiddleware):
    """Compress text only. Django adds random bytes, so that the length does not reveal content (BREACH)."""

    def process_response(self, request: HttpRequest, response: Any) -> HttpResponseBase:
        """Compress the response if it is text."""
        kind = response.headers.get("Content-Type", "")
        if kind.startswith(_TEXTS) and not kind.startswith(_EVENTS):
            compressed: HttpResponseBase = super().process_response(request, response)
            return compressed
        return response  # type: ignore[no-any-return]


class LoginMiddleware(LoginRequiredMiddleware):
    """Lead those who are not signed in to the sign-in page.

    Scripts get 401 with its address: they would take the sign-in page for the response that they expect.
    """

    def handle_no_permission(self, request: Any, view_func: Any) -> Any:
        """Return the response to a request without a login."""
        if request.htmx:
            sign_in = redirect_to_login(request.htmx.current_url_abs_path or "/", self.get_login_url(view_func))
            return HttpResponse(status=401, headers={"HX-Redirect": sign_in.url})
        if request.method in ("GET", "HEAD"):
            return super().handle_no_permission(request, view_func)
        # After the sign-in comes the page with the form: the address of the form often shows none.
        page = urlsplit(request.headers.get("Referer", ""))
        path = page._replace(scheme="", netloc="").geturl() if page.netloc == request.get_host() else "/"
        return redirect_to_login(path, self.get_login_url(view_func))


class PermissionsPolicyMiddleware:
    """Deny pages the devices that they do not need; the microphone is for Cato's own pages, where dictation is configured."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle a request."""
        response = self.get_response(request)
        microphone = "(self)" if settings.CATO.llm.transcription_model else "()"
        response.headers["Permissions-Policy"] = (
            f"microphone={microphone}, camera=(), geolocation=(), display-capture=()"
        )
        return response


class NoStore:
    """ASGI middleware that sends `Cache-Control: no-store` with every response that has no such header.

    Pages, fragments, exports and API responses depend on permissions at the time of the request. Static files and
    images have immutable URLs and a header of their own.
    """

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handle a connection."""

        async def send_with_header(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                if not any(name.lower() == b"cache-control" for name, _value in headers):
                    message = message | {"headers": [*headers, (b"cache-control", b"no-store")]}
            await send(message)

        await self.inner(scope, receive, send_with_header)


class OriginValidator:
    """ASGI middleware that accepts sockets of other origins and closes them with 4403."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Handle a connection."""
        if is_same_origin(scope):
            await self.inner(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": _WRONG_ORIGIN})


def is_same_origin(scope: dict[str, Any]) -> bool:
    """Return whether the Origin header is the address that the request was sent to, or a trusted origin.

    Scheme, host and port must match, not only the host.
    """
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    origin, host = headers.get(b"origin", ""), headers.get(b"host", "")
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
    except ValueError:  # invalid, such as http://[::1
        return False
    secure = scope.get("scheme") in ("wss", "https")
    return bool(host) and parts.scheme == ("https" if secure else "http") and parts.netloc.lower() == host.lower()
