"""The first account, one-time links and passwords."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Mapping
from datetime import timedelta

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.models import AuditEntry, OneTimeLink, User
from memory import api as memory
from memory.api import clean_name, clean_text

log = logging.getLogger(__name__)

INVITATION_DAYS = 7
RESET_DAYS = 1
_SETUP_DAYS = 365


class InvalidLinkError(Exception):
    """The link was used, has expired or never existed."""

    def __init__(self) -> None:
        super().__init__(_("This link is invalid or has expired. Ask an administrator for a new one."))


class UserLookupError(Exception):
    """No account, or more than one, matches the name."""


def is_set_up() -> bool:
    """Return whether an account exists; deleted accounts do not count."""
    return User.objects.filter(left_at=None).exists()


@transaction.atomic
def setup_token() -> str | None:
    """Return a new token for the set-up page, replacing earlier ones, or None if an account exists."""
    if is_set_up():
        return None
    OneTimeLink.objects.filter(kind=OneTimeLink.Kind.SETUP).delete()
    return _create_link(OneTimeLink.Kind.SETUP, role=User.Role.ADMINISTRATOR, days=_SETUP_DAYS, by=None)


@transaction.atomic
def create_invitation(*, by: User, role: str = User.Role.MEMBER) -> str:
    """Return a token with which one person can create an account. Only its hash is stored."""
    token = _create_link(OneTimeLink.Kind.INVITATION, role=role, days=INVITATION_DAYS, by=by)
    record_audit(by, AuditEntry.Action.INVITATION_CREATED, role)
    return token


@transaction.atomic
def reset_link(person: User, *, by: User | None) -> str:
    """Return a token with which the user can set a new password once; it replaces earlier ones.

    `by` is None on the server's command line.
    """
    OneTimeLink.objects.filter(kind=OneTimeLink.Kind.RESET, person=person, used_at=None).delete()
    token = _create_link(OneTimeLink.Kind.RESET, role=person.role, days=RESET_DAYS, by=by, person=person)
    record_audit(by, AuditEntry.Action.PASSWORD_LINK_CREATED, str(person.pk))
    return token


@transaction.atomic
def reset_password(token: str, password: str) -> User:
    """Set a new password with a one-time link and end all login sessions. Raises InvalidLinkError."""
    link = validate_link(token, OneTimeLink.Kind.RESET)
    person = link.person
    if person is None or not person.is_active:
        raise InvalidLinkError
    _mark_used(link, person)
    change_password(person, password)
    return person


def open_links() -> QuerySet[OneTimeLink]:
    """Return the invitations and password links that can still be used."""
    return _valid_links().exclude(kind=OneTimeLink.Kind.SETUP)


@transaction.atomic
def revoke_link(link_id: int, *, by: User) -> bool:
    """Revoke an open invitation or password link; return False if there is no such link."""
    link = open_links().filter(pk=link_id).first()
    if link is None or not OneTimeLink.objects.filter(pk=link_id, used_at=None).delete()[0]:
        return False
    record_audit(by, AuditEntry.Action.LINK_REVOKED, f"{link.kind} {link.person_id or link.role}")
    return True


def validate_link(token: str, kind: str) -> OneTimeLink:
    """Return the one-time link of a token. Raises InvalidLinkError."""
    link = _valid_links().filter(token_hash=hash_token(token), kind=kind).first()
    if link is None or (kind == OneTimeLink.Kind.SETUP and is_set_up()):
        raise InvalidLinkError
    return link


@transaction.atomic
def register(token: str, kind: str, *, name: str, email: str, password: str) -> User:
    """Create an account with a one-time link. Raises InvalidLinkError."""
    return redeem_link(validate_link(token, kind), name=name, email=email, password=password)


def open_invitation(invitation_id: int) -> OneTimeLink:
    """Return an invitation that can still be used. Raises InvalidLinkError."""
    link = open_links().filter(kind=OneTimeLink.Kind.INVITATION, pk=invitation_id).first()
    if link is None:
        raise InvalidLinkError
    return link


@transaction.atomic
def redeem_link(link: OneTimeLink, *, name: str, email: str, password: str | None) -> User:
    """Mark the link as used and create its account. Raises InvalidLinkError."""
    _mark_used(link)
    person = create_person(name=name, email=email, password=password, role=link.role)
    OneTimeLink.objects.filter(pk=link.pk).update(used_by=person)
    record_audit(person, AuditEntry.Action.PERSON_JOINED, link.role)
    return person


@transaction.atomic
def create_person(*, name: str, email: str, password: str | None, role: str = User.Role.MEMBER) -> User:
    """Create an account with its personal space.

    Without a password, the user can only sign in with the identity provider.
    """
    person = User(name=clean_name(name), email=clean_text(email).strip().lower(), role=role)
    person.set_password(password)
    person.save()
    memory.personal_space(person.id)
    memory.team_space()
    return person


def get_user_by_name(name: str) -> User:
    """Return the active account with this email or name, ignoring case. Raises UserLookupError."""
    users = User.objects.filter(is_active=True)
    # SQLite knows upper and lower case of ASCII only.
    matches = list(users.filter(email__iexact=name)) or [
        person for person in users if person.name.casefold() == name.casefold()
    ]
    if not matches:
        raise UserLookupError(f"There is no account {name}.")
    if len(matches) > 1:
        raise UserLookupError(f"Several accounts have the name {name}. Use the email.")
    return matches[0]


def save_preferences(person: User, preferences: Mapping[str, object]) -> None:
    """Save fields of an account, unless it was closed meanwhile; the other fields can have changed since it was read."""
    User.objects.filter(pk=person.pk, is_active=True).update(**preferences)


@transaction.atomic
def change_password(person: User, password: str) -> None:
    """Set a new password, revoke password links and end all login sessions.

    The caller must rotate the current session (`login_sessions.rotate`).
    """
    person.set_password(password)
    person.epoch += 1
    person.save(update_fields=["password", "epoch"])
    expire_links_for(person)
    record_audit(person, AuditEntry.Action.PASSWORD_CHANGED, str(person.id))


def expire_links(person: User, *, by: User) -> None:
    """Delete the open links that a user created or that were created for them."""
    expire_links_of_author(person, by=by)
    expire_links_for(person)


@transaction.atomic
def sign_out_elsewhere(person: User) -> None:
    """End all login sessions; the caller must rotate the current one (`login_sessions.rotate`)."""
    person.epoch += 1
    person.save(update_fields=["epoch"])
    record_audit(person, AuditEntry.Action.SESSION_OTHERS_ENDED, str(person.pk))


def record_audit(actor: User | None, action: str, target: str) -> None:
    """Add an entry to the audit log."""
    AuditEntry.objects.create(actor=actor, action=action, target=target[:200])


def expire_links_of_author(person: User, *, by: User) -> None:
    """Revoke the links that this person made, with an entry in the audit log."""
    count = OneTimeLink.objects.filter(created_by=person, used_at=None).delete()[0]
    if count:
        record_audit(by, AuditEntry.Action.LINK_ALL_REVOKED, f"{person.pk} {count}")


def expire_links_for(person: User) -> None:
    """Revoke the links for a new password of this person."""
    OneTimeLink.objects.filter(kind=OneTimeLink.Kind.RESET, person=person, used_at=None).delete()


def _valid_links() -> QuerySet[OneTimeLink]:
    """Return the links that can still be used; those that a person made only while they are an administrator."""
    has_valid_author = Q(created_by=None) | Q(created_by__is_active=True, created_by__role=User.Role.ADMINISTRATOR)
    return OneTimeLink.objects.filter(has_valid_author, used_at=None, expires_at__gt=timezone.now())


def _mark_used(link: OneTimeLink, person: User | None = None) -> None:
    """Mark the link as used. Raises InvalidLinkError if it was used or revoked in the meantime."""
    # `set_role` and `set_active` lock the author's row, too, so a concurrent demotion is seen here.
    if link.created_by_id is not None:
        User.objects.select_for_update().get(pk=link.created_by_id)
    if not _valid_links().filter(pk=link.pk).update(used_at=timezone.now(), used_by=person):
        raise InvalidLinkError


def _create_link(kind: str, *, role: str, days: int, by: User | None, person: User | None = None) -> str:
    token = secrets.token_urlsafe(32)
    expires = timezone.now() + timedelta(days=days)
    OneTimeLink.objects.create(
        token_hash=hash_token(token), kind=kind, role=role, created_by=by, expires_at=expires, person=person
    )
    return token


def hash_token(token: str) -> str:
    """Return the hash under which a token is stored."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
