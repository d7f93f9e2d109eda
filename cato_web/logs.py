"""Log formats (text or JSON) with request ids and without message content."""

from __future__ import annotations

import json
import logging
import re
import time
import traceback
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from django.http import HttpRequest, HttpResponseBase

log = logging.getLogger("cato.requests")

_HEADER = "X-Request-ID"
_request_id: ContextVar[str] = ContextVar("request_id", default="")


class RequestIdFilter(logging.Filter):
    """Add the request id to each record, and replace the request's path by its route: paths contain one-time links."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record and let it pass."""
        record.request_id = _request_id.get()
        request = getattr(record, "request", None)
        if isinstance(request, HttpRequest) and isinstance(record.args, tuple):
            record.args = tuple(_route_of(request) if arg == request.path else arg for arg in record.args)
        return True


class RedactingFormatter(logging.Formatter):
    """Format an exception as its type and traceback without its message, which may quote content."""

    def formatException(
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        """Return the traceback and the type of an exception."""
        if ei[0] is None:
            return ""
        frames = "".join(traceback.format_tb(ei[2])) if ei[2] else ""
        return f"{frames}{ei[0].__module__}.{ei[0].__qualname__}"


class TextFormatter(RedactingFormatter):
    """One line of text per record."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")

    def format(self, record: logging.LogRecord) -> str:
        """Append the request id."""
        line = super().format(record)
        request_id = getattr(record, "request_id", "")
        return f"{line} [{request_id}]" if request_id else line


class JsonFormatter(RedactingFormatter):
    """One JSON object per line: time, level, logger, message, request_id and the record's `facts`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the JSON line."""
        fields: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := getattr(record, "request_id", ""):
            fields["request_id"] = request_id
        fields |= getattr(record, "facts", {})
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


class RequestIdMiddleware:
    """Give each request an id, from the proxy or new, and log the request with its route.

    The route is logged instead of the URL, which may contain search terms.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Handle a request."""
        proxy_id = request.headers.get(_HEADER, "")
        request_id = proxy_id if re.fullmatch(r"[\w-]{8,64}", proxy_id, re.ASCII) else uuid.uuid4().hex
        token = _request_id.set(request_id)
        started_at = time.monotonic()
        try:
            response = self.get_response(request)
            response.headers[_HEADER] = request_id
            self._log(request, response, time.monotonic() - started_at)
        finally:
            _request_id.reset(token)
        return response

    def _log(self, request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
        if not log.isEnabledFor(logging.INFO):
            return
        route = _route_of(request)
        ms = round(1000 * seconds)
        facts = {"method": request.method, "route": route, "status": response.status_code, "ms": ms}
        log.info("%s %s %s in %s ms", request.method, route, response.status_code, ms, extra={"facts": facts})


def _route_of(request: HttpRequest) -> str:
    return f"/{request.resolver_match.route}" if request.resolver_match else "-"
