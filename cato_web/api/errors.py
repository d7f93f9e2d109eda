"""From errors to answers: whatever goes wrong below /api/ is said as JSON, `{"error": {"code", "message"}}`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from cato_web.errors import ERROR_TABLE, status_of
from memory.api import NOT_FOUND

log = logging.getLogger(__name__)

_MAX_ERRORS = 3
ErrorRenderer = Callable[[Any], HttpResponse]


def answer(status: int, code: str, message: str, **headers: str) -> HttpResponse:
    """An error as programs get it; headers are written with underscores."""
    response = JsonResponse({"error": {"code": code, "message": message}}, status=status)
    for name, value in headers.items():
        response[name.replace("_", "-")] = value
    return response


def not_found() -> HttpResponse:
    """The same for what is not theirs, what is not there, and addresses that lead nowhere."""
    return answer(404, "not_found", _(NOT_FOUND))


def wrong_method(allowed: str) -> HttpResponse:
    message = _("Method not allowed; use %(methods)s.") % {"methods": allowed}
    return answer(405, "wrong_method", message, Allow=allowed)


def _expected_error(error: Exception) -> HttpResponse:
    """The error's own sentence, with the status and code that the table gives it."""
    status, code = status_of(error)
    if status == 404:
        return not_found()
    headers = {"WWW_Authenticate": "Bearer"} if status == 401 else {}
    return answer(status, code, str(error), **headers)


def _sentence(status: int, code: str, sentence: Callable[[], str]) -> ErrorRenderer:
    """Say a sentence of ours in place of what a library says."""
    return lambda error: answer(status, code, sentence())


def _ninja_error(error: HttpError) -> HttpResponse:
    """What the library itself refuses: most of all a body that is no JSON."""
    if error.status_code == 400:
        return answer(422, "invalid", _("The body is not JSON that can be read, or it is too large."))
    return answer(error.status_code, "refused", str(error))


def _validation_error(error: ValidationError) -> HttpResponse:
    said = [_format_error(each) for each in error.errors[:_MAX_ERRORS]]
    return answer(422, "invalid", "; ".join(said))


def _format_error(error: Mapping[str, Any]) -> str:
    where = [str(part) for part in _strip_location(error["loc"])]
    return f"{'.'.join(where)}: {error['msg']}" if where else str(error["msg"])


def _strip_location(place: Sequence[Any]) -> Sequence[Any]:
    """The place as the program knows it, without where the library puts it ("body", the argument's name)."""
    return place[2:] if place[:1] == ("body",) and len(place) > 1 else place[1:]


def _internal_error(error: Exception) -> HttpResponse:
    """A mistake of ours: logged, and not shown."""
    log.error("a request could not be answered", exc_info=error)
    return answer(500, "broken", _("Something went wrong here. It is in the log; try again later."))


def _too_large() -> str:
    return _("The body is too large. Send less at once.")


def _unreadable() -> str:
    return _("The body cannot be read. Send JSON, or for a file multipart/form-data.")


ERROR_RESPONSES: dict[type[Exception], ErrorRenderer] = dict.fromkeys(ERROR_TABLE, _expected_error) | {
    HttpError: _ninja_error,
    ValidationError: _validation_error,
    RequestDataTooBig: _sentence(413, "too_large", _too_large),
    SuspiciousOperation: _sentence(422, "invalid", _unreadable),
    MultiPartParserError: _sentence(422, "invalid", _unreadable),
    UnreadablePostError: _sentence(422, "invalid", _unreadable),
    RecursionError: _sentence(422, "invalid", _unreadable),
    Exception: _internal_error,
}


def install_error_handlers(api: NinjaAPI) -> None:
    """Have `api` say each error as SAID says; the nearest class of an error counts."""
    for kind, said in ERROR_RESPONSES.items():
        api.add_exception_handler(kind, _handler(said))


def _handler(said: ErrorRenderer) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: said(error)
