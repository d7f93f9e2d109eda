"""From errors to pages: what the layers below raise becomes a status and a sentence."""

from __future__ import annotations

from collections.abc import Callable

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from chat.errors import NOTHING_HERE, PermissionDeniedError, Refused
from chat.errors import NotFound as NothingInChat
from memory.errors import CatoMemoryError
from memory.errors import NotFound as NothingInMemory


class SayWhatWentWrong:
    """Middleware that turns errors with a sentence into pages; "not yours" and "not there" are the same page."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, NothingInChat | NothingInMemory | Http404):
            return not_found(request)
        if isinstance(error, PermissionDeniedError):
            return forbidden(request, error)
        if isinstance(error, Refused | CatoMemoryError):
            return render(request, "400.html", {"error": str(error)}, status=400)
        return None


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
