"""Sign-in with OpenID Connect: authorization code flow with state, nonce and PKCE.

The provider's configuration and keys are fetched for each sign-in: sign-ins are rare, and keys change.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from cato_web.accounts import group_mapping, identities
from cato_web.accounts.identities import Provider, SignInRejectedError, VerifiedIdentity
from cato_web.accounts.models import AuditEntry, Identity, OneTimeLink, User
from memory.api import clean_name, parse_uuid

log = logging.getLogger(__name__)

TIMEOUT = 10.0  # seconds per request to the provider
STATE_MAX_AGE = 600  # seconds from the start to the callback
# Asymmetric algorithms only: the provider's own list may allow "none".
_SIGNING_ALGORITHMS = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
    "Ed25519",
)
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class IdentityProviderUnavailableError(Exception):
    """The provider did not respond, or its response is invalid."""

    def __init__(self) -> None:
        sentence = _("%(name)s does not answer at the moment. Try again in a while, or use your password.")
        super().__init__(sentence % {"name": name()})


@dataclass(frozen=True, slots=True)
class SignInResult:
    """The signed-in user, where to redirect them, and a greeting for the first sign-in.

    `confirms` is the id of the person who was signed in already and confirms who they are, otherwise "".
    """

    person: User
    target: str
    greeting: str
    confirms: str


def name() -> str:
    """Return the provider's display name, or "" if none is configured."""
    return settings.CATO.openid.name if settings.CATO.openid.issuer else ""


def is_linked(person: User) -> bool:
    """Return whether this person signs in with the provider."""
    identities = person.identities.all()
    return bool(name()) and any(row.issuer.startswith("http") for row in identities)


def provider() -> Provider:
    """Return the rules of the configured provider for whom it may sign in."""
    conf = settings.CATO.openid
    return Provider(conf.name, conf.joins, tuple(conf.only_emails_of), AuditEntry.Action.SESSION_STARTED_BY_OPENID)


def start(
    request: HttpRequest, *, target: str, invitation: OneTimeLink | None = None, confirms: User | None = None
) -> str:
    """Return the provider's URL to which to redirect. Raises IdentityProviderUnavailableError.

    With `confirms`, the provider is asked to authenticate the person again.
    """
    callback_url = _callback_url(request)
    with _provider_errors():
        client = _client()
        authorization = client.create_authorization_url(callback_url, **({"prompt": "login"} if confirms else {}))
    state_data = {
        "target": target,
        "invitation": invitation and invitation.pk,
        "confirms": str(confirms.pk) if confirms else "",
        "started_at": time.time(),
    }
    client.save_authorize_data(request, redirect_uri=callback_url, **state_data, **authorization)
    return str(authorization["url"])


def complete(request: HttpRequest) -> SignInResult:
    """Complete a sign-in, once per state.

    Raises SignInRejectedError, IdentityProviderUnavailableError or InvalidLinkError.
    """
    state = request.GET.get("state", "")
    integration = _integration()
    state_data = integration.get_state_data(request.session, state)
    if state_data is None or time.time() - state_data["started_at"] > STATE_MAX_AGE:
        integration.clear_state_data(request.session, state)
        raise SignInRejectedError(
            _("This sign-in has expired, was used already, or was started in another browser. Start again.")
        )
    if "error" in request.GET:
        integration.clear_state_data(request.session, state)
        log.warning("identity provider rejected a sign-in: %.80r", request.GET["error"])
        raise SignInRejectedError(
            _("%(name)s refused the sign-in. Try again, or use your password.") % {"name": name()}
        )
    identity, confirms = _exchange_code(request), state_data["confirms"]
    if confirms:
        return SignInResult(_confirm(identity, confirms), state_data["target"], "", confirms)
    person, greeting = identities.sign_in(identity, provider(), state_data["invitation"])
    map_groups(person, identity.groups)
    return SignInResult(person, state_data["target"], greeting, "")


def map_groups(person: User, names: frozenset[str] | None) -> None:
    """Give this person what belongs to their groups at the provider; None: these are not known."""
    conf = settings.CATO.openid
    if conf.groups_claim and names is not None:
        group_mapping.apply_mapping(person, names, groups=conf.groups, administrators=conf.administrators)


def _confirm(identity: VerifiedIdentity, person_id: str) -> User:
    """Return the person if this is their identity. Raises SignInRejectedError."""
    known = Identity.objects.filter(issuer=identity.issuer, subject=identity.subject, person_id=parse_uuid(person_id))
    found = known.select_related("person").first()
    if found is None:
        sentence = _("This is not the account at %(name)s with which you sign in here. Try again with yours.")
        raise SignInRejectedError(sentence % {"name": name()})
    return found.person


def _exchange_code(request: HttpRequest) -> VerifiedIdentity:
    with _provider_errors():
        client = _client()
        metadata = client.server_metadata
        # Authlib does not check the audience unless told to.
        claims = client.authorize_access_token(
            request,
            claims_options={
                "iss": {"essential": True, "value": metadata["issuer"]},
                "aud": {"essential": True, "value": settings.CATO.openid.client_id},
            },
        )
        return _verify_identity(client, claims)


def _verify_identity(client: Any, token: dict[str, Any]) -> VerifiedIdentity:
    claims = dict(token["userinfo"])  # from the ID token, which has been verified
    if not claims["sub"]:
        raise ValueError("the ID token has no subject")
    needed = {"email", settings.CATO.openid.groups_claim or "email"}
    if not needed <= claims.keys() and client.server_metadata.get("userinfo_endpoint"):
        userinfo = client.userinfo(token=token)
        claims = dict(userinfo) | claims if userinfo.get("sub") == claims["sub"] else claims
    email = identities.valid_email(claims.get("email"))
    display_name = next(
        (c for c in map(claims.get, ("name", "preferred_username")) if isinstance(c, str) and c.strip()), ""
    )
    return VerifiedIdentity(
        issuer=claims["iss"],
        subject=claims["sub"],
        email=email,
        is_verified=claims.get("email_verified") is True,
        name=clean_name(display_name)[:80] or email.partition("@")[0],
        groups=_groups(claims),
    )


def _groups(claims: dict[str, Any]) -> frozenset[str] | None:
    """Return the groups of the configured claim, none if it is missing; None if the provider has left them out.

    Entra names more than 200 groups only at another address (`_claim_names`).
    """
    claim = settings.CATO.openid.groups_claim
    if claim not in claims and claim in (claims.get("_claim_names") or {}):
        log.warning("the identity provider left out the groups of a person, because there are too many")
        return None
    names = claims.get(claim or "")
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()


def _client() -> Any:
    """Return an OAuth client with the provider's metadata."""
    from authlib.integrations.django_client import DjangoOAuth2App  # type: ignore[import-untyped]

    conf, issuer = settings.CATO.openid, (settings.CATO.openid.issuer or "").rstrip("/")
    secret = conf.client_secret and conf.client_secret.get_secret_value()
    # With Authlib's leeway, an access token that is valid for a minute would count as expired.
    options = {"scope": conf.scopes, "code_challenge_method": "S256", "default_timeout": TIMEOUT, "leeway": 0}
    url = f"{issuer}/.well-known/openid-configuration"
    client = DjangoOAuth2App(
        _integration(),
        client_id=conf.client_id,
        client_secret=secret,
        server_metadata_url=url,
        client_kwargs=options,
    )
    metadata = client.load_server_metadata()
    if str(metadata.get("issuer", "")).rstrip("/") != issuer:
        raise ValueError(f"its issuer is {metadata.get('issuer')!r:.200}, openid.issuer is {conf.issuer!r}")
    schemes = {"https", urlsplit(issuer).scheme}
    if any(urlsplit(str(metadata.get(endpoint, ""))).scheme not in schemes for endpoint in _ENDPOINTS):
        raise ValueError(f"its metadata lacks one of {', '.join(_ENDPOINTS)}, or one is not https://")
    metadata["id_token_signing_alg_values_supported"] = _SIGNING_ALGORITHMS
    auth_methods = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if secret and "client_secret_basic" not in auth_methods and "client_secret_post" in auth_methods:
        options["token_endpoint_auth_method"] = "client_secret_post"  # noqa: S105  (a method, not a secret)
    return client


def _integration() -> Any:
    from authlib.integrations.django_client import DjangoIntegration

    return DjangoIntegration("openid")


@contextmanager
def _provider_errors() -> Iterator[None]:
    """Convert provider errors into errors for users, and log the details."""
    from authlib.integrations.django_client import OAuthError
    from joserfc.errors import JoseError
    from requests import RequestException

    try:
        yield
    except (OAuthError, JoseError) as error:
        log.warning("identity provider: %s: %.300r", type(error).__name__, str(error))
        sentence = _("Sign-in with %(name)s failed. Try again; details are in the server log.")
        raise SignInRejectedError(sentence % {"name": name()}) from error
    except (RequestException, ValueError, KeyError, TypeError, AttributeError) as error:
        log.error("identity provider: %s: %.300r", type(error).__name__, str(error))
        raise IdentityProviderUnavailableError from error


def _callback_url(request: HttpRequest) -> str:
    public = settings.CATO.server.public_url
    path = reverse("openid_callback")
    return f"{public.rstrip('/')}{path}" if public else request.build_absolute_uri(path)
