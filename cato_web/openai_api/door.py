"""The one way in for programs: a token with the right scope, no cookie; and every error in their own shape."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, TypeVar

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from pydantic import BaseModel, ValidationError

from cato_web.api_auth import authenticate_header
from cato_web.openai_api.refusals import OpenAIError, openai_error_of
from chat.executors import run_in_db_thread
from memory.api import CatoError

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]
M = TypeVar("M", bound=BaseModel)
# A whole conversation comes with each request, with its pictures.
_MOST_BYTES = 50_000_000


def door(scope: str, method: str) -> Callable[[View], View]:
    """A view for whoever holds a token for `scope`; it is given the principal after the request."""

    def wrap(view: View) -> View:
        @csrf_exempt
        @login_not_required
        @wraps(view)
        async def opened(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            try:
                if not settings.CATO.api.enabled:
                    raise nothing_here(request.path)
                if request.method != method:
                    raise OpenAIError(_("Method not allowed; use %(method)s.") % {"method": method}, status=405)
                principal = await run_in_db_thread(authenticate_header, request.headers.get("Authorization", ""), scope)
                return await view(request, principal, **arguments)
            except OpenAIError as error:
                return error.response
            except CatoError as error:
                return openai_error_of(error).response

        return opened

    return wrap


def sent(request: HttpRequest, shape: type[M]) -> M:
    """What the request carries, read as `shape`. Raises OpenAIError, naming the first field that is wrong."""
    data = request.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise OpenAIError(_("This request is too large."), status=413)
    try:
        return shape.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise OpenAIError(f"{place}: {first['msg']}" if place else first["msg"], param=place or None) from error


def nothing_here(path: str) -> OpenAIError:
    """There is nothing at this address."""
    return OpenAIError(_("There is nothing at %(path)s.") % {"path": path}, status=404, code="unknown_url")
