"""What is logged: lines for people or JSON for machines, with the request they belong to, and no word that anybody said."""

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
    """Gives each record the id of the request that it was written for, empty outside of one, and for its address the
    route's pattern: addresses hold one-time links."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.request_id = _request_id.get()
        request = getattr(record, "request", None)
        if isinstance(request, HttpRequest) and isinstance(record.args, tuple):
            record.args = tuple(_route_of(request) if arg == request.path else arg for arg in record.args)
        return True


class RedactingFormatter(logging.Formatter):
    """An exception as its kind and where it was raised: its message may quote what somebody said."""

    def formatException(
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        if ei[0] is None:
            return ""
        where = "".join(traceback.format_tb(ei[2])) if ei[2] else ""
        return f"{where}{ei[0].__module__}.{ei[0].__qualname__}"


class TextFormatter(RedactingFormatter):
    """A line for people."""

    def __init__(self) -> None:
        super().__init__("{asctime} {levelname} {name}: {message}", style="{")

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        request_id = getattr(record, "request_id", "")
        return f"{line} [{request_id}]" if request_id else line


class JsonFormatter(RedactingFormatter):
    """An object a line: time, level, logger, message, request_id, and what a record adds under `facts`."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if request_id := getattr(record, "request_id", ""):
            said["request_id"] = request_id
        said |= getattr(record, "facts", {})
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False)


class RequestIdMiddleware:
    """Middleware that gives each request an id, from the proxy before us or new, and logs it where that is wanted.

    What was searched for stands in addresses too, so here as well it is the route's pattern that is logged.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        given = request.headers.get(_HEADER, "")
        request_id = given if re.fullmatch(r"[\w-]{8,64}", given, re.ASCII) else uuid.uuid4().hex
        token = _request_id.set(request_id)
        began = time.monotonic()
        try:
            response = self.get_response(request)
            response.headers[_HEADER] = request_id
            self._log(request, response, time.monotonic() - began)
        finally:
            _request_id.reset(token)
        return response

    def _log(self, request: HttpRequest, response: HttpResponseBase, took: float) -> None:
        if not log.isEnabledFor(logging.INFO):
            return
        route = _route_of(request)
        ms = round(1000 * took)
        facts = {"method": request.method, "route": route, "status": response.status_code, "ms": ms}
        log.info("%s %s %s in %s ms", request.method, route, response.status_code, ms, extra={"facts": facts})


def _route_of(request: HttpRequest) -> str:
    return f"/{request.resolver_match.route}" if request.resolver_match else "-"
