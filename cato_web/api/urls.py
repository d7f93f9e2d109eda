"""URLs below /api/, all wrapped so that every response is JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path, re_path, reverse
from django.utils.translation import gettext as _
from ninja import NinjaAPI
from ninja.operation import Operation
from ninja.responses import Response

from cato_web.accounts.acting_token import separate_actor
from cato_web.api import (
    account,
    administration,
    ask,
    documents,
    errors,
    events,
    exchanges,
    exports,
    imports,
    knowledge,
    records,
    schema_page,
    search,
    threads,
    usage,
    webhooks,
)
from cato_web.api.auth import TokenAuth
from cato_web.api_auth import Principal, add_headers, rate_limit_headers
from memory.api import InvalidInputError

View = Callable[..., HttpResponseBase]
_ABOUT = (
    "The API of Cato. Create a token in Settings and send it as `Authorization: Bearer cato_…`. The client then acts "
    "as the owner of the token, within its scopes."
)


class Api(NinjaAPI):
    """The API; operation ids are function names."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the name of the operation's function."""
        return str(operation.view_func.__name__)


# Ninja's documentation pages load scripts from other hosts, so they are off.
api = Api(title="Cato", version="1", description=_ABOUT, openapi_url=None, docs_url=None, urls_namespace="api")
errors.install_error_handlers(api)
for module in (
    *(account, search, exchanges, documents, threads, ask, records, knowledge, imports, exports, events, webhooks),
    *(administration, usage),
):
    api.add_router("", module.router)


def description(request: HttpRequest) -> HttpResponse:
    """Return the OpenAPI document, which is public."""
    return Response(_description())


def index(request: HttpRequest) -> HttpResponse:
    """Return where the API is described."""
    return Response({"description": reverse("api_page"), "openapi": reverse("api_description")})


def page(request: HttpRequest) -> HttpResponse:
    """Show the OpenAPI document as a page, which is public."""
    document = _description()
    rows = {"operations": schema_page.operation_rows(document), "schemas": schema_page.schema_rows(document)}
    return render(request, "api/schema.html", rows)


def unknown_path(request: HttpRequest) -> HttpResponse:
    """Respond to any other path below /api/."""
    sentence = _("There is nothing at %(path)s; %(page)s lists what there is.")
    return errors.answer(404, "unknown_url", sentence % {"path": request.path, "page": reverse("api_page")})


@cache
def _description() -> dict[str, Any]:
    document: dict[str, Any] = dict(api.get_openapi_schema(path_prefix="/api/"))
    document["servers"] = [{"url": "/"}]
    errors.describe_errors(document)
    scopes = {op.view_func.__name__: op.auth_callbacks[0] for op in operations()}
    for methods in document["paths"].values():
        for operation in methods.values():
            token = scopes[operation["operationId"]]
            if isinstance(token, TokenAuth) and token.scope:
                operation["security"] = [{"Token": [str(token.scope)]}]
    return document


def operations() -> list[Operation]:
    """Return all operations."""
    return [
        op for router in api._get_bound_routers() for view in router.path_operations.values() for op in view.operations
    ]


def _refuse_unknown_parameters(operation: Operation) -> None:
    """Make the operation refuse query parameters that it does not have, which are most often typing errors."""
    view = operation.view_func
    known = {
        name
        for model in operation.models
        if model.__ninja_param_source__ == "query"
        for name in model.__ninja_flatten_map__
    }

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        unknown = sorted(set(request.GET) - known)
        if unknown:
            sentence = _("There is no query parameter %(name)s here.") % {"name": f"“{unknown[0][:80]}”"}
            if known:
                sentence += " " + _("Known are: %(names)s.") % {"names": ", ".join(sorted(known))}
            raise InvalidInputError(sentence)
        return view(request, *args, **kwargs)

    operation.view_func = wrapped


def _json_view(view: View) -> View:
    """Respond with 404 while the API is disabled, and render Django's own errors as JSON."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.CATO.api.enabled:
            return errors.not_found()
        try:
            with separate_actor():
                response = view(request, *args, **kwargs)
        except Http404:
            return errors.not_found()
        if isinstance(response, HttpResponseNotAllowed):
            return errors.wrong_method(response["Allow"])
        principal = getattr(request, "auth", None)  # Ninja sets it once a token is accepted
        if isinstance(principal, Principal):
            add_headers(response, rate_limit_headers(principal.rate_limit))
        return response

    # Authentication is by token. Cookies are ignored, so CSRF is impossible.
    wrapped.login_required = False  # type: ignore[attr-defined]
    wrapped.csrf_exempt = True  # type: ignore[attr-defined]
    return wrapped


def _wrap_patterns(patterns: list[URLPattern | URLResolver]) -> list[URLPattern | URLResolver]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            pattern.callback = _json_view(pattern.callback)
    return patterns


for _operation in operations():
    _refuse_unknown_parameters(_operation)
_patterns, _app, _namespace = api.urls
urlpatterns = [
    path("api/openapi.json", _json_view(description), name="api_description"),
    re_path(r"^api/?$", _json_view(index), name="api_index"),
    path("api/docs", _json_view(page), name="api_page"),
    path("api/", (_wrap_patterns(_patterns), _app, _namespace)),
    re_path(r"^api(?:/.*)?$", _json_view(unknown_path), name="api_nothing"),
]
