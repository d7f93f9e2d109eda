"""Authentication, request bodies and error rendering of the endpoints at /v1."""

from __future__ import annotations

import logging
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

from cato_web.api_auth import add_headers, authenticate_header, exceeded_headers, rate_limit_headers
from cato_web.openai_api.errors import OpenAIError, internal_error, openai_error_of
from chat.executors import run_in_db_thread
from memory.api import CatoError

log = logging.getLogger(__name__)

View = Callable[..., Coroutine[Any, Any, HttpResponseBase]]
M = TypeVar("M", bound=BaseModel)
# Each request contains the whole conversation with its images.
MAX_BODY_BYTES = 50_000_000


def openai_endpoint(method: str, *scopes: str) -> Callable[[View], View]:
    """Decorate a view that requires a token with one of `scopes`; the view receives the principal after the request."""

    def wrap(view: View) -> View:
        @csrf_exempt
        @login_not_required
        @wraps(view)
        async def wrapped(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            headers: dict[str, str] = {}
            response: HttpResponseBase
            try:
                if not settings.CATO.api.enabled:
                    raise unknown_path(request.path)
                if request.method != method:
                    headers["Allow"] = method
                    raise OpenAIError(_("Method not allowed; use %(method)s.") % {"method": method}, status=405)
                principal = await run_in_db_thread(authenticate_header, _authorization(request), *scopes)
                headers = rate_limit_headers(principal.rate_limit)
                response = await view(request, principal, **arguments)
            except OpenAIError as error:
                response = error.response
            except CatoError as error:
                response = openai_error_of(error).response
                headers |= exceeded_headers(error)
            except Exception:  # clients of OpenAI cannot read the page that Django would show
                log.exception("unexpected error in a request to /v1")
                response = internal_error().response
            add_headers(response, headers)
            return response

        return wrapped

    return wrap


def _authorization(request: HttpRequest) -> str:
    """Return the header `Authorization`; some clients send the token as `X-API-Key`, and those of Azure as `api-key`."""
    key = request.headers.get("X-API-Key") or request.headers.get("api-key", "")
    return request.headers.get("Authorization", f"Bearer {key}" if key else "")


def parse_body(request: HttpRequest, model: type[M]) -> M:
    """Parse the body as `model`. Raises OpenAIError, which names the first invalid field."""
    data = request.read(MAX_BODY_BYTES + 1)
    if len(data) > MAX_BODY_BYTES:
        raise OpenAIError(_("This request is too large."), status=413)
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(str(part) for part in first["loc"])
        raise OpenAIError(
            f"{location}: {first['msg']}" if location else first["msg"], param=location or None
        ) from error


def unknown_path(path: str) -> OpenAIError:
    """Return the error for an unknown path."""
    return OpenAIError(_("There is nothing at %(path)s.") % {"path": path}, status=404, code="unknown_url")
