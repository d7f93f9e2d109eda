"""The addresses below /api/: each operation behind one door that speaks JSON, whatever happens."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver, path, re_path
from ninja import NinjaAPI
from ninja.operation import Operation
from ninja.responses import Response

from cato_web.api import account, ask, documents, errors, exchanges, records, search, threads
from cato_web.api.auth import TokenAuth

View = Callable[..., HttpResponseBase]
_ABOUT = (
    "Cato for programs. A person makes a token in the settings and gives it to the program, which then does what the "
    "token lets it, as that person. Send it as `Authorization: Bearer cato_…`."
)


class Api(NinjaAPI):
    """The API, whose operations go by the names of their functions."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        return str(operation.view_func.__name__)


# The library's pages of documentation load scripts from other hosts, so there are none: docs/api.md and the description.
api = Api(title="Cato", version="1", description=_ABOUT, openapi_url=None, docs_url=None, urls_namespace="api")
errors.install_error_handlers(api)
for each in (account, search, exchanges, documents, threads, ask, records):
    api.add_router("", each.router)


def description(request: HttpRequest) -> HttpResponse:
    """All operations, in the format OpenAPI; it says nothing of anybody here."""
    return Response(_description())


def unknown_path(request: HttpRequest) -> HttpResponse:
    """Any other address."""
    return errors.not_found()


@cache
def _description() -> dict[str, Any]:
    written: dict[str, Any] = dict(api.get_openapi_schema(path_prefix="/api/"))
    del written["servers"]
    scopes = {op.view_func.__name__: op.auth_callbacks[0] for op in operations()}
    for methods in written["paths"].values():
        for described in methods.values():
            token = scopes[described["operationId"]]
            if isinstance(token, TokenAuth) and token.scope:
                described["security"] = [{"Token": [str(token.scope)]}]
    return written


def operations() -> list[Operation]:
    """Every operation there is."""
    return [
        op for router in api._get_bound_routers() for view in router.path_operations.values() for op in view.operations
    ]


def _json_view(view: View) -> View:
    """The view for whoever comes, with a token or without one, by any method."""

    @wraps(view)
    def door(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.CATO.api.enabled:
            return errors.not_found()
        try:
            answer = view(request, *args, **kwargs)
        except Http404:
            return errors.not_found()
        if isinstance(answer, HttpResponseNotAllowed):
            return errors.wrong_method(answer["Allow"])
        return answer

    # Its own sign-in is the token; cookies count for nothing, so there is nothing to forge either.
    door.login_required = False  # type: ignore[attr-defined]
    door.csrf_exempt = True  # type: ignore[attr-defined]
    return door


def _wrap_patterns(patterns: list[URLPattern | URLResolver]) -> list[URLPattern | URLResolver]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            pattern.callback = _json_view(pattern.callback)
    return patterns


_patterns, _app, _namespace = api.urls
urlpatterns = [
    path("api/openapi.json", _json_view(description), name="api_description"),
    path("api/", (_wrap_patterns(_patterns), _app, _namespace)),
    re_path(r"^api(?:/.*)?$", _json_view(unknown_path), name="api_nothing"),
]
