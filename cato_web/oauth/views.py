"""Pages and endpoints of the authorization server: metadata, registration, consent, tokens and revocation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from csp.decorators import csp_update
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cato_web.accounts.models import ApiToken
from cato_web.accounts.tokens import TokenLimitError
from cato_web.accounts.views import AuthenticatedRequest
from cato_web.errors import error_page, not_found
from cato_web.oauth.addresses import RESOURCE_PATH, form_target, host_of, is_local, is_offered_at, origin_of
from cato_web.oauth.client_documents import is_document_address, update_client
from cato_web.oauth.grants import describe_scope
from cato_web.oauth.models import OAuthClient
from cato_web.oauth.registration import RegistrationError, register
from memory.api import InvalidInputError, RateLimitedError, is_within_limit

View = Callable[..., HttpResponse]
_TOKEN_REQUESTS_PER_MINUTE = 300  # from one address


@dataclass(frozen=True, slots=True)
class ConsentRow:
    """The request of an app: its own name, where it sends people back to, and pairs of scope and description.

    `receiver` is a sentence that says what is at `host`. `described_at` is the host of the app's description, or "".
    """

    name: str
    described_at: str
    host: str
    receiver: str
    scopes: list[tuple[str, str]]


def _offered(view: View) -> View:
    """Show the view only where apps can connect."""

    @wraps(view)
    def wrapper(request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        return view(request, *args, **kwargs) if is_offered_at(origin_of(request)) else not_found(request)

    return wrapper


@login_not_required
@require_GET
@_offered
def resource_metadata(request: HttpRequest) -> HttpResponse:
    """Describe the resource /mcp (RFC 9728): which server gives tokens for it."""
    address = origin_of(request)
    return JsonResponse(
        {
            "resource": f"{address}{RESOURCE_PATH}",
            "resource_name": "Cato",
            "authorization_servers": [address],
            "scopes_supported": ApiToken.Scope.values,
            "bearer_methods_supported": ["header"],
        }
    )


@login_not_required
@require_GET
@_offered
def server_metadata(request: HttpRequest) -> HttpResponse:
    """Describe the authorization server (RFC 8414)."""
    address = origin_of(request)
    return JsonResponse(
        {
            "issuer": address,
            "authorization_endpoint": address + reverse("oauth_authorize"),
            "token_endpoint": address + reverse("oauth_token"),
            "registration_endpoint": address + reverse("oauth_register"),
            "revocation_endpoint": address + reverse("oauth_revoke"),
            "scopes_supported": ApiToken.Scope.values,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_methods_supported": OAuthClient.AUTH_METHODS,
            "revocation_endpoint_auth_methods_supported": OAuthClient.AUTH_METHODS,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
        }
    )


@csrf_exempt
@login_not_required
@require_POST
@_offered
def register_client(request: HttpRequest) -> HttpResponse:
    """Register a client."""
    try:
        information = register(request.body, address=_address(request))
    except RegistrationError as error:
        return JsonResponse({"error": error.code, "error_description": str(error)}, status=400)
    except RateLimitedError as error:
        return _too_many(str(error))
    return JsonResponse(information, status=201)


@require_http_methods(["GET", "POST"])
@_offered
def authorize(request: AuthenticatedRequest) -> HttpResponse:
    """Ask the person whether an app may use Cato in their name, and send them back to the app with the answer."""
    from cato_web.oauth import server

    client_id = request.GET.get("client_id", "")
    if is_document_address(client_id):
        try:
            update_client(client_id, person_id=request.user.pk)
        except (InvalidInputError, RateLimitedError) as error:
            return error_page(request, error)
    try:
        grant = server.consent_request(request)
    except server.OAuth2Error as error:
        if error.redirect_uri:
            return server.refuse(request, error)
        return error_page(request, InvalidInputError(_explain(error.error or "")))
    if request.method == "GET":
        return _render_consent(request, grant)
    scopes = request.POST.getlist("allowed") if request.POST.get("decision") == "allow" else []
    try:
        return server.decide(request, grant, scopes)
    except TokenLimitError as error:
        return _render_consent(request, grant, error=str(error))


@csrf_exempt
@login_not_required
@require_POST
@_offered
def token(request: HttpRequest) -> HttpResponse:
    """Exchange a code or a refresh token for tokens."""
    from cato_web.oauth import server

    return _limited(request, server.token_response)


@csrf_exempt
@login_not_required
@require_POST
@_offered
def revoke(request: HttpRequest) -> HttpResponse:
    """Revoke the grant of a token, by the client that it was given to."""
    from cato_web.oauth import server

    return _limited(request, server.revocation_response)


def _render_consent(request: AuthenticatedRequest, grant: Any, error: str = "") -> HttpResponse:
    redirect_uri = grant.redirect_uri
    row = ConsentRow(
        name=grant.request.client.name,
        described_at=host_of(grant.request.client.client_id) if grant.request.client.read_at else "",
        host=host_of(redirect_uri),
        receiver=_receiver(redirect_uri),
        scopes=[(scope, describe_scope(scope)) for scope in grant.request.scope.split()],
    )
    context = {"section": "settings", "app": row, "person": request.user, "error": error}
    # Browsers apply form-action to redirects, too.
    allow_redirect = csp_update({"form-action": [form_target(redirect_uri)]})
    page: Callable[[HttpRequest], Any] = allow_redirect(
        lambda request: render(request, "people/authorize_app.html", context, status=409 if error else 200)
    )
    response: HttpResponse = page(request)
    return response


def _receiver(redirect_uri: str) -> str:
    if is_local(redirect_uri):
        return _("An app on this computer receives the access.")
    if redirect_uri.startswith("https:"):
        return _("This site receives the access.")
    return _("The app on this device that opens such addresses receives the access.")


def _explain(error: str) -> str:
    """Return what to do about a request of an app that cannot be told of its error."""
    if error == "invalid_client":
        return _("This app is not registered here any more. Remove Cato in the app, then connect it again.")
    return _("The app sent a request that Cato cannot accept. Remove Cato in the app, then connect it again.")


def _limited(request: HttpRequest, respond: Callable[[HttpRequest], HttpResponse]) -> HttpResponse:
    if not is_within_limit(f"oauth-token:{_address(request)}", _TOKEN_REQUESTS_PER_MINUTE, 60):
        return _too_many(_("Too many requests. Try again in a minute."))
    return respond(request)


def _too_many(message: str) -> HttpResponse:
    return JsonResponse({"error": "temporarily_unavailable", "error_description": message}, status=429)


def _address(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))
