"""Signing in by OpenID Connect: begun with state, nonce and proof key, and finished with whom the provider vouches for.

Only here is a provider asked. Its configuration and keys are fetched anew each time: sign-ins are rare, and keys change.
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

from cato_web.accounts import services
from cato_web.accounts.models import AuditEntry, Identity, Pass, User
from memory.text import clean_name, clean_text
from memory.utils.formatting import format_list

log = logging.getLogger(__name__)

PATIENCE = 10.0  # seconds for each of the provider's answers
GOOD_FOR = 600  # seconds from the button to the way back
# Signed with a key that only the provider has. Left to it, a token might come unsigned.
_SIGNED_WITH = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class SignInRejectedError(Exception):
    """Nobody is signed in by what came back; the message says why and what to do."""


class IdentityProviderUnavailableError(Exception):
    """The provider does not answer, or not as one."""

    def __init__(self) -> None:
        sentence = _("%(name)s does not answer at the moment. Try again in a while, or use your password.")
        super().__init__(sentence % {"name": name()})


@dataclass(frozen=True, slots=True)
class VerifiedIdentity:
    """What the provider says of somebody. The e-mail is empty where it says none that can be one."""

    issuer: str
    subject: str
    email: str
    is_verified: bool
    name: str


@dataclass(frozen=True, slots=True)
class SignInResult:
    """Who came back from the provider, where they wanted to go, and what to tell them the first time."""

    person: User
    target: str
    greeting: str


def name() -> str:
    """What people know the provider by; empty where none is configured."""
    return settings.CATO.openid.name if settings.CATO.openid.issuer else ""


def start(request: HttpRequest, *, target: str, invitation: Pass | None = None) -> str:
    """The provider's address to send this browser to. Raises IdentityProviderUnavailableError."""
    back = _address_of_return(request)
    with _asking():
        client = _client()
        sent = client.create_authorization_url(back)
    kept = {"target": target, "invitation": invitation and invitation.pk, "begun_at": time.time()}
    client.save_authorize_data(request, redirect_uri=back, **kept, **sent)
    return str(sent["url"])


def complete(request: HttpRequest) -> SignInResult:
    """Who comes back, each begun sign-in once. Raises SignInRejectedError, IdentityProviderUnavailableError, InvalidLinkError."""
    state = request.GET.get("state", "")
    integration = _integration()
    kept = integration.get_state_data(request.session, state)
    if kept is None or time.time() - kept["begun_at"] > GOOD_FOR:
        integration.clear_state_data(request.session, state)
        raise SignInRejectedError(_("This sign-in was begun elsewhere or too long ago, or is used up. Begin again."))
    if "error" in request.GET:
        integration.clear_state_data(request.session, state)
        log.warning("the provider of identities let nobody in: %.80r", request.GET["error"])
        raise SignInRejectedError(_("%(name)s did not let you in. Try again, or use your password.") % {"name": name()})
    person, greeting = sign_in(_exchange_code(request), kept["invitation"])
    return SignInResult(person, kept["target"], greeting)


def sign_in(vouched: VerifiedIdentity, invitation_id: int | None = None) -> tuple[User, str]:
    """The account of whom the provider vouches for, and a greeting if it was found or made for them just now.

    Raises SignInRejectedError, and InvalidLinkError where an invitation would be needed that is used up.
    """
    try:
        return _enter(vouched, invitation_id)
    except IntegrityError:  # at the same moment in another window
        return _enter(vouched, invitation_id)


@transaction.atomic
def _enter(vouched: VerifiedIdentity, invitation_id: int | None) -> tuple[User, str]:
    known = Identity.objects.filter(issuer=vouched.issuer, subject=vouched.subject).select_related("person").first()
    if known is not None:
        if not known.person.is_active:
            raise _no_account()
        return known.person, ""
    _check_email(vouched, is_invited=invitation_id is not None)
    person = User.objects.filter(email__iexact=vouched.email).first()
    greeting = _("From now on you can sign in with %(name)s.") % {"name": name()}
    if person is None:
        person = _new_person(vouched, invitation_id)
        greeting = _("Welcome, %(name)s.") % {"name": person.name}
    elif (
        not vouched.is_verified
        or not person.is_active
        or Identity.objects.filter(person=person, issuer=vouched.issuer).exists()
    ):
        raise _no_account()
    Identity.objects.create(person=person, issuer=vouched.issuer, subject=vouched.subject)
    services.record_audit(person, AuditEntry.Action.SESSION_STARTED_BY_OPENID, vouched.issuer)
    return person, greeting


def _check_email(vouched: VerifiedIdentity, *, is_invited: bool) -> None:
    """By e-mail only the first time. An invitation lets in whom it was given to, whatever e-mail they have."""
    if not vouched.email:
        sentence = _("%(name)s does not tell Cato your e-mail, which an account needs. Ask an administrator.")
        raise SignInRejectedError(sentence % {"name": name()})
    domains = settings.CATO.openid.only_emails_of
    if not vouched.is_verified and (domains or not is_invited):
        sentence = _("%(name)s has not verified that your e-mail is yours. Have it verified there, then begin again.")
        raise SignInRejectedError(sentence % {"name": name()})
    if domains and vouched.email.rpartition("@")[2] not in domains:
        sentence = _("Only e-mail addresses of %(domains)s are let in here with %(name)s.")
        raise SignInRejectedError(sentence % {"domains": format_list(domains), "name": name()})


def _new_person(vouched: VerifiedIdentity, invitation_id: int | None) -> User:
    if invitation_id is not None:
        invitation = services.open_invitation(invitation_id)
        return services.redeem_link(invitation, name=vouched.name, email=vouched.email, password=None)
    # Whoever comes before the administrator would leave Cato without one.
    if not settings.CATO.openid.joins or not services.is_set_up():
        raise _no_account()
    person = services.create_person(name=vouched.name, email=vouched.email, password=None)
    services.record_audit(person, AuditEntry.Action.PERSON_JOINED, person.role)
    return person


def _no_account() -> SignInRejectedError:
    """One sentence for who has no account and who has none any more: neither is told of anybody's."""
    sentence = _("You do not have an account here. Ask an administrator for an invitation.")
    return SignInRejectedError(sentence % {"name": name()})


def _exchange_code(request: HttpRequest) -> VerifiedIdentity:
    with _asking():
        client = _client()
        told = client.server_metadata
        # The library itself holds the audience against nothing.
        claims = client.authorize_access_token(
            request,
            claims_options={
                "iss": {"essential": True, "value": told["issuer"]},
                "aud": {"essential": True, "value": settings.CATO.openid.client_id},
            },
        )
        return _vouched(client, claims)


def _vouched(client: Any, token: dict[str, Any]) -> VerifiedIdentity:
    claims = dict(token["userinfo"])  # of the identity token, which has been checked
    if not claims["sub"]:
        raise ValueError("the identity token names nobody")
    if "email" not in claims and client.server_metadata.get("userinfo_endpoint"):
        more = client.userinfo(token=token)
        claims = dict(more) | claims if more.get("sub") == claims["sub"] else claims
    email = _email(claims.get("email"))
    called = next((c for c in map(claims.get, ("name", "preferred_username")) if isinstance(c, str) and c.strip()), "")
    return VerifiedIdentity(
        issuer=claims["iss"],
        subject=claims["sub"],
        email=email,
        is_verified=claims.get("email_verified") is True,
        name=clean_name(called)[:80] or email.partition("@")[0],
    )


def _email(claim: object) -> str:
    email = clean_text(claim).strip().lower() if isinstance(claim, str) else ""
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email if len(email) <= 254 else ""


def _client() -> Any:
    """A client that knows where this provider's endpoints are."""
    from authlib.integrations.django_client import DjangoOAuth2App  # type: ignore[import-untyped]

    conf, issuer = settings.CATO.openid, (settings.CATO.openid.issuer or "").rstrip("/")
    secret = conf.client_secret and conf.client_secret.get_secret_value()
    # Without leeway: an access token that is good for a minute still says who its bearer is.
    options = {"scope": conf.scopes, "code_challenge_method": "S256", "default_timeout": PATIENCE, "leeway": 0}
    address = f"{issuer}/.well-known/openid-configuration"
    client = DjangoOAuth2App(
        _integration(),
        client_id=conf.client_id,
        client_secret=secret,
        server_metadata_url=address,
        client_kwargs=options,
    )
    told = client.load_server_metadata()
    if str(told.get("issuer", "")).rstrip("/") != issuer:
        raise ValueError(f"it calls itself {told.get('issuer')!r:.200}, openid.issuer is {conf.issuer!r}")
    schemes = {"https", urlsplit(issuer).scheme}
    if any(urlsplit(str(told.get(endpoint, ""))).scheme not in schemes for endpoint in _ENDPOINTS):
        raise ValueError(f"it does not say all of {', '.join(_ENDPOINTS)}, or not with https://")
    told["id_token_signing_alg_values_supported"] = _SIGNED_WITH
    ways = told.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    if secret and "client_secret_basic" not in ways and "client_secret_post" in ways:
        options["token_endpoint_auth_method"] = "client_secret_post"  # noqa: S105  (a way, not a secret)
    return client


def _integration() -> Any:
    from authlib.integrations.django_client import DjangoIntegration

    return DjangoIntegration("openid")


@contextmanager
def _asking() -> Iterator[None]:
    """Turns what goes wrong between Cato and the provider into what a person can be told; the log says more."""
    from authlib.integrations.django_client import OAuthError
    from joserfc.errors import JoseError
    from requests import RequestException

    try:
        yield
    except (OAuthError, JoseError) as error:
        log.warning("the provider of identities: %s: %.300r", type(error).__name__, str(error))
        sentence = _("Sign-in with %(name)s failed. Try again; details are in the server log.")
        raise SignInRejectedError(sentence % {"name": name()}) from error
    except (RequestException, ValueError, KeyError, TypeError, AttributeError) as error:
        log.error("the provider of identities: %s: %.300r", type(error).__name__, str(error))
        raise IdentityProviderUnavailableError from error


def _address_of_return(request: HttpRequest) -> str:
    public = settings.CATO.server.public_url
    path = reverse("openid_back")
    return f"{public.rstrip('/')}{path}" if public else request.build_absolute_uri(path)
