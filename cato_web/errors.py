"""Errors at the edge: one table from error to HTTP status and code, and the pages that show them."""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from cato_web.api_auth import InvalidTokenError, MissingScopeError
from chat.errors import ConflictError, ModelError, PermissionDeniedError
from memory.errors import (
    NOTHING_HERE,
    CatoError,
    DocumentConflictError,
    EmbeddingError,
    InvalidInputError,
    NotFoundError,
    RateLimitedError,
    RecordConflictError,
    VectorStoreDisabledError,
    VectorStoreUnavailableError,
)

# The status and the code of an error; the nearest class of an error counts. Pages and the OpenAI protocol answer 400
# where the REST API answers 422.
ERROR_TABLE: dict[type[Exception], tuple[int, str]] = {
    InvalidTokenError: (401, "no_token"),
    MissingScopeError: (403, "scope_missing"),
    PermissionDeniedError: (403, "forbidden"),
    NotFoundError: (404, "not_found"),
    Http404: (404, "not_found"),
    ConflictError: (409, "refused"),
    VectorStoreDisabledError: (409, "disabled"),
    RecordConflictError: (409, "record_conflict"),
    DocumentConflictError: (409, "document_conflict"),
    InvalidInputError: (422, "invalid"),
    CatoError: (422, "invalid"),
    RateLimitedError: (429, "too_fast"),
    ModelError: (502, "model_error"),
    VectorStoreUnavailableError: (503, "unavailable"),
    EmbeddingError: (503, "unavailable"),
}
# Seconds to wait: rate limits are counted by the minute, and a service that is down is rarely back sooner.
RETRY_AFTER = {429: "60", 503: "60"}


def status_of(error: Exception) -> tuple[int, str]:
    """The HTTP status and the code of an error; 500 for one that nobody expected."""
    return next((ERROR_TABLE[kind] for kind in type(error).__mro__ if kind in ERROR_TABLE), (500, "broken"))


class ErrorPageMiddleware:
    """Answer expected errors with a page that shows their sentence.

    Whatever is answered with 429 or 503 gets `Retry-After`, also what the APIs answer.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if response.status_code in RETRY_AFTER:
            response.headers.setdefault("Retry-After", RETRY_AFTER[response.status_code])
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        status, _code = status_of(error)
        if status == 404:
            return not_found(request)
        if status == 403:
            return forbidden(request, error)
        return error_page(request, error) if isinstance(error, CatoError) else None


def error_page(request: HttpRequest, error: Exception) -> HttpResponse:
    """The page of an error with its sentence."""
    status, _code = status_of(error)
    status = 400 if status == 422 else status
    return render(request, "400.html", {"error": str(error), "status": status}, status=status)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render(request, "404.html", {"error": _(NOTHING_HERE)}, status=404)


def bad_request(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """What Django itself refuses: most of all, more data than a message may have."""
    sentence = _("This is too much or cannot be read. Shorten it or split it; what you wrote is still on your page.")
    if request.headers.get("HX-Request"):
        return render(request, "chat/_composer_error.html", {"error": sentence}, status=400)
    return render(request, "400.html", {"error": sentence}, status=400)


def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    sentence = str(exception or "") or _("This page is for administrators.")
    return render(request, "403.html", {"error": sentence}, status=403)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    sentence = _("This page is out of date. Go back, reload it, and try again; nothing was changed.")
    return render(request, "403.html", {"error": sentence}, status=403)
