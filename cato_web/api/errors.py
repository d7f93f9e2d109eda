"""Render every error below /api/ as JSON: `{"error": {"code", "message"}}`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from cato_web.api.schemas import Error
from cato_web.api_auth import add_headers, exceeded_headers
from cato_web.errors import ERROR_TABLE, INTERNAL_ERROR, status_of
from memory.api import NOT_FOUND, CatoError

log = logging.getLogger(__name__)

_MAX_ERRORS = 3
# Statuses of errors: possible in every operation, and of groups of operations.
_COMMON = (401, 403, 422, 429)
FIND, CHANGE, STORE = (404,), (404, 409), (404, 409, 503)
ErrorRenderer = Callable[[Any], HttpResponse]


def responses(model: Any, *errors: int, status: int = 200) -> dict[int, Any]:
    """Return the responses of an operation: `model` with `status`, and the statuses of its errors.

    The errors have no model here: Ninja makes a class of each, and three hundred of them took .2 s of every start. The
    OpenAPI document has it from `describe_errors`.
    """
    return {status: model} | dict.fromkeys(sorted({*_COMMON, *errors}))


def describe_errors(document: dict[str, Any]) -> None:
    """Add the model of errors to an OpenAPI document."""
    schema = Error.model_json_schema(ref_template="#/components/schemas/{model}")
    document["components"]["schemas"] |= schema.pop("$defs") | {"Error": schema}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, response in operation["responses"].items():
                if status >= 400:
                    response["content"] = content


def answer(status: int, code: str, message: str, **headers: str) -> HttpResponse:
    """Return an error response; underscores in header names become hyphens."""
    response = JsonResponse({"error": {"code": code, "message": message}}, status=status)
    for name, value in headers.items():
        response[name.replace("_", "-")] = value
    return response


def not_found() -> HttpResponse:
    """Return the same response for missing and unreadable objects and for unknown paths."""
    return answer(404, "not_found", _(NOT_FOUND))


def wrong_method(allowed: str) -> HttpResponse:
    """Return the response to a method that the path does not support."""
    message = _("Method not allowed; use %(methods)s.") % {"methods": allowed}
    return answer(405, "wrong_method", message, Allow=allowed)


def _expected_error(error: Exception) -> HttpResponse:
    """Render an error of ERROR_TABLE with its message."""
    status, code = status_of(error)
    if status == 404:
        return not_found()
    headers = {"WWW_Authenticate": "Bearer"} if status == 401 else {}
    response = answer(status, code, str(error), **headers)
    if isinstance(error, CatoError):
        add_headers(response, exceeded_headers(error))
    return response


def _sentence(status: int, code: str, sentence: Any) -> ErrorRenderer:
    """Return a renderer with a fixed message, which is translated lazily, instead of the library's."""
    return lambda error: answer(status, code, str(sentence))


def _ninja_error(error: HttpError) -> HttpResponse:
    """Render errors of Ninja itself, most often invalid JSON."""
    if error.status_code == 400:
        return answer(422, "invalid", _("The body is not JSON that can be read, or it is too large."))
    return answer(error.status_code, "refused", str(error))


def _validation_error(error: ValidationError) -> HttpResponse:
    return answer(422, "invalid", "; ".join(map(_format_error, error.errors[:_MAX_ERRORS])))


def _format_error(error: Mapping[str, Any]) -> str:
    location = ".".join(str(part) for part in _strip_location(error["loc"]))
    return f"{location}: {error['msg']}" if location else str(error["msg"])


def _strip_location(location: Sequence[Any]) -> Sequence[Any]:
    """Remove the parts of a location that Ninja adds ("body" and the name of the argument)."""
    return location[2:] if location[:1] == ("body",) and len(location) > 1 else location[1:]


def _internal_error(error: Exception) -> HttpResponse:
    """Log an unexpected error and hide its details."""
    log.error("unexpected error in an API request", exc_info=error)
    return answer(500, "broken", _(INTERNAL_ERROR))


_unreadable = _sentence(
    422, "invalid", gettext_lazy("The body cannot be read. Send JSON, or for a file multipart/form-data.")
)
ERROR_RESPONSES: dict[type[Exception], ErrorRenderer] = dict.fromkeys(ERROR_TABLE, _expected_error) | {
    HttpError: _ninja_error,
    ValidationError: _validation_error,
    RequestDataTooBig: _sentence(413, "too_large", gettext_lazy("The body is too large. Send less at once.")),
    SuspiciousOperation: _unreadable,
    MultiPartParserError: _unreadable,
    UnreadablePostError: _unreadable,
    RecursionError: _unreadable,
    Exception: _internal_error,
}


def install_error_handlers(api: NinjaAPI) -> None:
    """Register the renderers with `api`; the nearest class of an error counts."""
    for kind, render in ERROR_RESPONSES.items():
        api.add_exception_handler(kind, partial(_handle, render))


def _handle(render: ErrorRenderer, request: HttpRequest, error: Any) -> HttpResponse:
    return render(error)
