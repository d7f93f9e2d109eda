"""Pages go compressed; what is compressed already, or is not text, goes as it is."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware

_TEXTS = ("text/", "application/json")
# Each event is to arrive by itself.
_EVENTS = "text/event-stream"


class CompressionMiddleware(GZipMiddleware):
    """Django's, for texts alone. It adds bytes by chance, so that a page's length does not tell what is in it."""

    def process_response(self, request: HttpRequest, response: Any) -> HttpResponseBase:
        kind = response.headers.get("Content-Type", "")
        if kind.startswith(_TEXTS) and not kind.startswith(_EVENTS):
            compressed: HttpResponseBase = super().process_response(request, response)
            return compressed
        return response  # type: ignore[no-any-return]
