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

from cato_web.compatible.refusals import PERMISSION, RATE, Refusal, refusal_of
from cato_web.people.tokens import Bearer, TokenRefused, TooFast, bearer_in
from chat.errors import ChatError
from chat.hops import to_database
from memory.errors import CatoMemoryError

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]
M = TypeVar("M", bound=BaseModel)
# A whole conversation comes with each request, with its pictures.
_MOST_BYTES = 50_000_000


def door(scope: str, method: str) -> Callable[[View], View]:
    """A view for whoever holds a token for `scope`; it is given the bearer after the request."""

    def wrap(view: View) -> View:
        @csrf_exempt
        @login_not_required
        @wraps(view)
        async def opened(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            try:
                if not settings.CATO.api.enabled:
                    raise nothing_here(request.path)
                if request.method != method:
                    raise Refusal(_("Method not allowed; use %(method)s.") % {"method": method}, status=405)
                bearer = await to_database(_let_in, request.headers.get("Authorization", ""), scope)
                return await view(request, bearer, **arguments)
            except Refusal as refusal:
                return refusal.response
            except (ChatError, CatoMemoryError) as error:
                return refusal_of(error).response

        return opened

    return wrap


def sent(request: HttpRequest, shape: type[M]) -> M:
    """What the request carries, read as `shape`. Raises Refusal, naming the first field that is wrong."""
    data = request.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise Refusal(_("This request is too large."), status=413)
    try:
        return shape.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise Refusal(f"{place}: {first['msg']}" if place else first["msg"], param=place or None) from error


def nothing_here(path: str) -> Refusal:
    """There is nothing at this address."""
    return Refusal(_("There is nothing at %(path)s.") % {"path": path}, status=404, code="unknown_url")


def _let_in(header: str, scope: str) -> Bearer:
    try:
        bearer = bearer_in(header)
    except TokenRefused as error:
        raise Refusal(str(error), status=401, code="invalid_api_key") from error
    except TooFast as error:
        raise Refusal(str(error), status=429, kind=RATE, code="rate_limit_exceeded") from error
    if scope not in bearer.scopes:
        sentence = _('Token is missing the scope "%(scope)s".') % {"scope": scope}
        raise Refusal(sentence, status=403, kind=PERMISSION, code="missing_scope")
    return bearer
