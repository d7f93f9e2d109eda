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
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from cato_web.accounts import openid_groups, services
from cato_web.accounts.models import AuditEntry, Identity, OneTimeLink, User
from memory.api import clean_name, clean_text, format_list, parse_uuid

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


class SignInRejectedError(Exception):
    """The provider's response does not sign anybody in."""


class IdentityProviderUnavailableError(Exception):
    """The provider did not respond, or its response is invalid."""

    def __init__(self) -> None:
        sentence = _("%(name)s does not answer at the moment. Try again in a while, or use your password.")
        super().__init__(sentence % {"name": name()})


@dataclass(frozen=True, slots=True)
class VerifiedIdentity:
    """The claims of the provider. `email` is empty if the provider sent no valid address; `groups` None: not known."""

    issuer: str
    subject: str
    email: str
    is_verified: bool
    name: str
    groups: frozenset[str] | None = None


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
        raise SignInRejectedError(_("This sign-in was begun elsewhere or too long ago, or is used up. Begin again."))
    if "error" in request.GET:
        integration.clear_state_data(request.session, state)
        log.warning("identity provider rejected a sign-in: %.80r", request.GET["error"])
        raise SignInRejectedError(_("%(name)s did not let you in. Try again, or use your password.") % {"name": name()})
    identity, confirms = _exchange_code(request), state_data["confirms"]
    if confirms:
        return SignInResult(_confirm(identity, confirms), state_data["target"], "", confirms)
    person, greeting = sign_in(identity, state_data["invitation"])
    openid_groups.apply_mapping(person, identity.groups)
    return SignInResult(person, state_data["target"], greeting, "")


def _confirm(identity: VerifiedIdentity, person_id: str) -> User:
    """Return the person if this is their identity. Raises SignInRejectedError."""
    known = Identity.objects.filter(issuer=identity.issuer, subject=identity.subject, person_id=parse_uuid(person_id))
    found = known.select_related("person").first()
    if found is None:
        sentence = _("This is not the account at %(name)s with which you sign in here. Try again with yours.")
        raise SignInRejectedError(sentence % {"name": name()})
    return found.person


def sign_in(identity: VerifiedIdentity, invitation_id: int | None = None) -> tuple[User, str]:
    """Return the account of an identity, and a greeting if the account was linked or created just now.

    Raises SignInRejectedError, and InvalidLinkError if a required invitation is no longer valid.
    """
    try:
        return _sign_in(identity, invitation_id)
    except IntegrityError:  # a concurrent sign-in created the row
        return _sign_in(identity, invitation_id)


@transaction.atomic
def _sign_in(identity: VerifiedIdentity, invitation_id: int | None) -> tuple[User, str]:
    known = Identity.objects.filter(issuer=identity.issuer, subject=identity.subject).select_related("person").first()
    if known is not None:
        if not known.person.is_active:
            raise _no_account()
        return known.person, ""
    _check_email(identity, is_invited=invitation_id is not None)
    person = User.objects.filter(email__iexact=identity.email).first()
    greeting = _("From now on you can sign in with %(name)s.") % {"name": name()}
    if person is None:
        person = _create_person(identity, invitation_id)
        greeting = _("Welcome, %(name)s.") % {"name": person.name}
    elif (
        not identity.is_verified
        or not person.is_active
        or Identity.objects.filter(person=person, issuer=identity.issuer).exists()
    ):
        raise _no_account()
    Identity.objects.create(person=person, issuer=identity.issuer, subject=identity.subject)
    services.record_audit(person, AuditEntry.Action.SESSION_STARTED_BY_OPENID, identity.issuer)
    return person, greeting


def _check_email(identity: VerifiedIdentity, *, is_invited: bool) -> None:
    """Check the e-mail of a first sign-in.

    With an invitation it may be unverified, unless `only_emails_of` is configured.
    """
    if not identity.email:
        sentence = _("%(name)s does not tell Cato your e-mail, which an account needs. Ask an administrator.")
        raise SignInRejectedError(sentence % {"name": name()})
    domains = settings.CATO.openid.only_emails_of
    if not identity.is_verified and (domains or not is_invited):
        sentence = _("%(name)s has not verified that your e-mail is yours. Have it verified there, then begin again.")
        raise SignInRejectedError(sentence % {"name": name()})
    if domains and identity.email.rpartition("@")[2] not in domains:
        sentence = _("Only email addresses of %(domains)s can sign in with %(name)s.")
        raise SignInRejectedError(sentence % {"domains": format_list(domains), "name": name()})


def _create_person(identity: VerifiedIdentity, invitation_id: int | None) -> User:
    if invitation_id is not None:
        invitation = services.open_invitation(invitation_id)
        return services.redeem_link(invitation, name=identity.name, email=identity.email, password=None)
    # Before set-up, a new account would leave the server without an administrator.
    if not settings.CATO.openid.joins or not services.is_set_up():
        raise _no_account()
    person = services.create_person(name=identity.name, email=identity.email, password=None)
    services.record_audit(person, AuditEntry.Action.PERSON_JOINED, person.role)
    return person


def _no_account() -> SignInRejectedError:
    """Return the same error for missing and inactive accounts, so that it does not reveal accounts."""
    sentence = _("You do not have an account here. Ask an administrator for an invitation.")
    return SignInRejectedError(sentence % {"name": name()})


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
    email = _email(claims.get("email"))
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


def _email(claim: object) -> str:
    email = clean_text(claim).strip().lower() if isinstance(claim, str) else ""
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email if len(email) <= 254 else ""


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
