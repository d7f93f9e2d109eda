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
from memory.errors import NOTHING_HERE

log = logging.getLogger(__name__)

_MOST_SAID = 3
Said = Callable[[Any], HttpResponse]


def answer(status: int, code: str, message: str, **headers: str) -> HttpResponse:
    """An error as programs get it; headers are written with underscores."""
    response = JsonResponse({"error": {"code": code, "message": message}}, status=status)
    for name, value in headers.items():
        response[name.replace("_", "-")] = value
    return response


def nothing_here() -> HttpResponse:
    """The same for what is not theirs, what is not there, and addresses that lead nowhere."""
    return answer(404, "not_found", _(NOTHING_HERE))


def wrong_method(allowed: str) -> HttpResponse:
    message = _("Method not allowed; use %(methods)s.") % {"methods": allowed}
    return answer(405, "wrong_method", message, Allow=allowed)


def _of_table(error: Exception) -> HttpResponse:
    """The error's own sentence, with the status and code that the table gives it."""
    status, code = status_of(error)
    if status == 404:
        return nothing_here()
    headers = {"WWW_Authenticate": "Bearer"} if status == 401 else {}
    return answer(status, code, str(error), **headers)


def _sentence(status: int, code: str, sentence: Callable[[], str]) -> Said:
    """Say a sentence of ours in place of what a library says."""
    return lambda error: answer(status, code, sentence())


def _of_library(error: HttpError) -> HttpResponse:
    """What the library itself refuses: most of all a body that is no JSON."""
    if error.status_code == 400:
        return answer(422, "invalid", _("The body is not JSON that can be read, or it is too large."))
    return answer(error.status_code, "refused", str(error))


def _of_validation(error: ValidationError) -> HttpResponse:
    said = [_in_words(each) for each in error.errors[:_MOST_SAID]]
    return answer(422, "invalid", "; ".join(said))


def _in_words(error: Mapping[str, Any]) -> str:
    where = [str(part) for part in _without_wrapping(error["loc"])]
    return f"{'.'.join(where)}: {error['msg']}" if where else str(error["msg"])


def _without_wrapping(place: Sequence[Any]) -> Sequence[Any]:
    """The place as the program knows it, without where the library puts it ("body", the argument's name)."""
    return place[2:] if place[:1] == ("body",) and len(place) > 1 else place[1:]


def _of_ours(error: Exception) -> HttpResponse:
    """A mistake of ours: logged, and not shown."""
    log.error("a request could not be answered", exc_info=error)
    return answer(500, "broken", _("Something went wrong here. It is in the log; try again later."))


def _too_large() -> str:
    return _("The body is too large. Send less at once.")


def _unreadable() -> str:
    return _("The body cannot be read. Send JSON, or for a file multipart/form-data.")


SAID: dict[type[Exception], Said] = dict.fromkeys(ERROR_TABLE, _of_table) | {
    HttpError: _of_library,
    ValidationError: _of_validation,
    RequestDataTooBig: _sentence(413, "too_large", _too_large),
    SuspiciousOperation: _sentence(422, "invalid", _unreadable),
    MultiPartParserError: _sentence(422, "invalid", _unreadable),
    UnreadablePostError: _sentence(422, "invalid", _unreadable),
    RecursionError: _sentence(422, "invalid", _unreadable),
    Exception: _of_ours,
}


def speak_json(api: NinjaAPI) -> None:
    """Have `api` say each error as SAID says; the nearest class of an error counts."""
    for kind, said in SAID.items():
        api.add_exception_handler(kind, _handler(said))


def _handler(said: Said) -> Callable[[HttpRequest, Any], HttpResponse]:
    return lambda request, error: said(error)
