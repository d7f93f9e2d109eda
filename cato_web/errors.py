"""The table from errors to HTTP status and code, and the error pages."""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from cato_web.api_auth import InvalidTokenError, MissingScopeError
from cato_web.idempotency import IdempotencyError
from chat.errors import ConflictError, ModelError, PermissionDeniedError, UsageLimitError
from memory.api import (
    NOT_FOUND,
    CatoError,
    DocumentConflictError,
    EmbeddingError,
    EventsExpiredError,
    InvalidInputError,
    NotFoundError,
    RateLimitedError,
    RecordConflictError,
    StatementConflictError,
    VectorStoreDisabledError,
    VectorStoreUnavailableError,
)

# HTTP status and code, looked up along the error's MRO. Pages and the OpenAI protocol use 400 instead of 422.
ERROR_TABLE: dict[type[Exception], tuple[int, str]] = {
    InvalidTokenError: (401, "no_token"),
    MissingScopeError: (403, "scope_missing"),
    PermissionDeniedError: (403, "forbidden"),
    NotFoundError: (404, "not_found"),
    Http404: (404, "not_found"),
    ConflictError: (409, "refused"),
    IdempotencyError: (409, "idempotency_conflict"),
    VectorStoreDisabledError: (409, "disabled"),
    RecordConflictError: (409, "record_conflict"),
    DocumentConflictError: (409, "document_conflict"),
    StatementConflictError: (409, "statement_conflict"),
    EventsExpiredError: (410, "events_expired"),
    InvalidInputError: (422, "invalid"),
    CatoError: (422, "invalid"),
    RateLimitedError: (429, "too_fast"),
    UsageLimitError: (429, "limit_reached"),
    ModelError: (502, "model_error"),
    VectorStoreUnavailableError: (503, "unavailable"),
    EmbeddingError: (503, "unavailable"),
}
# Of an unexpected exception, whose details are only in the log.
INTERNAL_ERROR = gettext_noop("Something went wrong here. It is in the log; try again later.")
# Seconds: rate limits are counted per minute, and a failed service rarely recovers sooner.
RETRY_AFTER = {429: "60", 503: "60"}


def status_of(error: Exception) -> tuple[int, str]:
    """Return the HTTP status and code of an error; (500, "broken") for an unexpected one."""
    return next((ERROR_TABLE[kind] for kind in type(error).__mro__ if kind in ERROR_TABLE), (500, "broken"))


class ErrorPageMiddleware:
    """Render a page for expected errors, and add `Retry-After` to responses with 429 or 503, also of the APIs."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle a request."""
        response = self.get_response(request)
        if response.status_code in RETRY_AFTER:
            response.headers.setdefault("Retry-After", RETRY_AFTER[response.status_code])
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the page of an expected error, or None."""
        status, _code = status_of(error)
        if status == 404:
            return not_found(request)
        if status == 403:
            return forbidden(request, error)
        return error_page(request, error) if isinstance(error, CatoError) else None


def error_page(request: HttpRequest, error: Exception) -> HttpResponse:
    """Render the page of an error with its message."""
    status, _code = status_of(error)
    status = 400 if status == 422 else status
    if isinstance(error, RateLimitedError):
        heading = _("Too many requests.")
    else:
        heading = _("Bad request.") if status == 400 else _("This is not possible at the moment.")
    response = _render(request, "400.html", str(error), status, heading)
    if isinstance(error, UsageLimitError):
        response.headers["Retry-After"] = str(error.retry_after)
    return response


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Render the 404 page."""
    return _render(request, "404.html", _(NOT_FOUND), 404)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Render Django's 400 errors, most often because a request is too large."""
    sentence = _("This is too much or cannot be read. Shorten it or split it; what you wrote is still on your page.")
    return _render(request, "400.html", sentence, 400, _("Bad request."))


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Render the 403 page."""
    return _render(request, "403.html", str(exception or "") or _("This page is for administrators."), 403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Render the page of a failed CSRF check."""
    sentence = _("This page is out of date. Go back, reload it, and try again; nothing was changed.")
    return _render(request, "403.html", sentence, 403)


def _render(request: HttpRequest, page: str, error: str, status: int, heading: str = "") -> HttpResponse:
    """Render the page of an error, or only its message for a part of a page, which stays as it is.

    `heading` is for 400.html, which several kinds of errors share. htmx is recognised by its header, since requests that
    fail early have not passed its middleware.
    """
    if not request.headers.get("HX-Request"):
        return render(request, page, {"error": error, "heading": heading}, status=status)
    response = render(request, "components/_error_toast.html", {"error": error}, status=status)
    response.headers["HX-Reswap"] = "none"
    return response
