"""Accounts of people whom another system has authenticated: found by its id, linked by email, or created."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from cato_web.accounts import services
from cato_web.accounts.models import AuditEntry, Identity, User
from memory.api import clean_text, format_list


class SignInRejectedError(Exception):
    """The other system's response does not sign anybody in."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A system that authenticates people, and whom it may sign in.

    With `joins`, everybody whom it authenticates gets an account. `only_emails_of` are the domains allowed at the first
    sign-in, all if it is empty. `linked` is the action that is recorded when an account is linked.
    """

    name: str
    joins: bool
    only_emails_of: tuple[str, ...]
    linked: AuditEntry.Action


@dataclass(frozen=True, slots=True)
class VerifiedIdentity:
    """The claims of a provider about a person. `email` is empty if it sent no valid address; `groups` None: not known."""

    issuer: str
    subject: str
    email: str
    is_verified: bool
    name: str
    groups: frozenset[str] | None = None


def sign_in(identity: VerifiedIdentity, provider: Provider, invitation_id: int | None = None) -> tuple[User, str]:
    """Return the account of an identity, and a greeting if the account was linked or created just now.

    Raises SignInRejectedError, and InvalidLinkError if a required invitation is no longer valid.
    """
    try:
        return _sign_in(identity, provider, invitation_id)
    except IntegrityError:  # a concurrent sign-in created the row
        return _sign_in(identity, provider, invitation_id)


@transaction.atomic
def _sign_in(identity: VerifiedIdentity, provider: Provider, invitation_id: int | None) -> tuple[User, str]:
    known = Identity.objects.filter(issuer=identity.issuer, subject=identity.subject).select_related("person").first()
    if known is not None:
        if not known.person.is_active:
            raise _no_account(provider)
        return known.person, ""
    _check_email(identity, provider, is_invited=invitation_id is not None)
    person = User.objects.filter(email__iexact=identity.email).first()
    greeting = _("From now on you can sign in with %(name)s.") % {"name": provider.name}
    if person is None:
        person = _create_person(identity, provider, invitation_id)
        greeting = _("Welcome, %(name)s.") % {"name": person.name}
    elif (
        not identity.is_verified
        or not person.is_active
        or Identity.objects.filter(person=person, issuer=identity.issuer).exists()
    ):
        raise _no_account(provider)
    Identity.objects.create(person=person, issuer=identity.issuer, subject=identity.subject)
    services.record_audit(person, provider.linked, identity.issuer)
    return person, greeting


def _check_email(identity: VerifiedIdentity, provider: Provider, *, is_invited: bool) -> None:
    """Check the email of a first sign-in.

    With an invitation it may be unverified, unless `only_emails_of` is configured.
    """
    if not identity.email:
        sentence = _("%(name)s does not tell Cato your email, which an account needs. Ask an administrator.")
        raise SignInRejectedError(sentence % {"name": provider.name})
    domains = provider.only_emails_of
    if not identity.is_verified and (domains or not is_invited):
        sentence = _("%(name)s has not verified that your email is yours. Have it verified there, then begin again.")
        raise SignInRejectedError(sentence % {"name": provider.name})
    if domains and identity.email.rpartition("@")[2] not in domains:
        sentence = _("Only email addresses of %(domains)s can sign in with %(name)s.")
        raise SignInRejectedError(sentence % {"domains": format_list(domains), "name": provider.name})


def _create_person(identity: VerifiedIdentity, provider: Provider, invitation_id: int | None) -> User:
    if invitation_id is not None:
        invitation = services.open_invitation(invitation_id)
        return services.redeem_link(invitation, name=identity.name, email=identity.email, password=None)
    # Before set-up, a new account would leave the server without an administrator.
    if not provider.joins or not services.is_set_up():
        raise _no_account(provider)
    person = services.create_person(name=identity.name, email=identity.email, password=None)
    services.record_audit(person, AuditEntry.Action.PERSON_JOINED, person.role)
    return person


def _no_account(provider: Provider) -> SignInRejectedError:
    """Return the same error for missing and inactive accounts, so that it does not reveal accounts."""
    sentence = _("You do not have an account here. Ask an administrator for an invitation.")
    return SignInRejectedError(sentence % {"name": provider.name})


def valid_email(value: object) -> str:
    """Return the email in lower case, or "" if it is none."""
    email = clean_text(value).strip().lower() if isinstance(value, str) else ""
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email if len(email) <= 254 else ""
