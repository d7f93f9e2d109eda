"""Compression of text responses."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

_TEXTS = ("text/", "application/json")
# gzip would buffer events.
_EVENTS = "text/event-stream"


class CompressionMiddleware(GZipMiddleware):
    """Compress text only. Django adds random bytes, so that the length does not reveal content (BREACH)."""

    def process_response(self, request: HttpRequest, response: Any) -> HttpResponseBase:
        """Compress the response if it is text."""
        kind = response.headers.get("Content-Type", "")
        if kind.startswith(_TEXTS) and not kind.startswith(_EVENTS):
            compressed: HttpResponseBase = super().process_response(request, response)
            return compressed
        return response  # type: ignore[no-any-return]
