"""Letting people in and out: the first account, invitations, passwords, deactivation."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from datetime import timedelta

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.accounts.models import AuditEntry, Pass, User
from memory.administration import reveals
from memory.spaces import access
from memory.text import clean_name, clean_text

INVITATION_DAYS = 7
RESET_DAYS = 1
_SETUP_DAYS = 365
_ROLE_ACTIONS = {
    User.Role.ADMINISTRATOR: AuditEntry.Action.PERSON_MADE_ADMINISTRATOR,
    User.Role.MEMBER: AuditEntry.Action.PERSON_MADE_MEMBER,
}


class InvalidLinkError(Exception):
    """The link is used, expired, or was never made."""

    def __init__(self) -> None:
        super().__init__(_("This link is invalid or has expired. Ask an administrator for a new one."))


class LastAdministratorError(Exception):
    """The change would leave no active administrator."""

    def __init__(self) -> None:
        super().__init__(_("This is the only administrator left. Make somebody else an administrator first."))


def is_set_up() -> bool:
    """Whether anybody has an account; those who deleted theirs have none."""
    return User.objects.filter(left_at=None).exists()


@transaction.atomic
def setup_token() -> str | None:
    """A new token for the set-up page, in place of any earlier one; None where there is an account."""
    if is_set_up():
        return None
    Pass.objects.filter(kind=Pass.Kind.SETUP).delete()
    return _make_pass(Pass.Kind.SETUP, role=User.Role.ADMINISTRATOR, days=_SETUP_DAYS, by=None)


@transaction.atomic
def create_invitation(*, by: User, role: str = User.Role.MEMBER) -> str:
    """A token with which one person may make an account; it is shown once and kept only as a hash."""
    token = _make_pass(Pass.Kind.INVITATION, role=role, days=INVITATION_DAYS, by=by)
    record_audit(by, AuditEntry.Action.INVITATION_CREATED, role)
    return token


@transaction.atomic
def reset_link(person: User, *, by: User | None) -> str:
    """Return a token with which this person sets a new password once; it replaces any earlier one.

    `by` is None on the command line of the server.
    """
    Pass.objects.filter(kind=Pass.Kind.RESET, person=person, used_at=None).delete()
    token = _make_pass(Pass.Kind.RESET, role=person.role, days=RESET_DAYS, by=by, person=person)
    record_audit(by, AuditEntry.Action.PASSWORD_LINK_CREATED, str(person.pk))
    return token


@transaction.atomic
def reset_password(token: str, password: str) -> User:
    """Set the password of the person whose link this is, once, and end all their sign-ins. Raises InvalidLinkError."""
    found = validate_link(token, Pass.Kind.RESET)
    person = found.person
    if person is None or not person.is_active:
        raise InvalidLinkError
    _use(found, person)
    change_password(person, password)
    return person


@transaction.atomic
def set_role(person: User, role: str, *, by: User) -> None:
    """Make somebody an administrator or a member. Raises LastAdministratorError, and PermissionDenied if `by` is no
    administrator any more."""
    administrators = _lock_administrators(by)
    if role != User.Role.ADMINISTRATOR:
        if administrators <= {person.pk}:
            raise LastAdministratorError
        _expire_links_of_author(person, by=by)
        reveals.end_all(person.pk)
    User.objects.filter(pk=person.pk).update(role=role)
    record_audit(by, _ROLE_ACTIONS[User.Role(role)], str(person.pk))


@transaction.atomic
def make_administrator(email: str, name: str) -> tuple[User, str]:
    """Make the account with this e-mail an active administrator, creating it if there is none.

    For the command line of the server. Returns the account, and a token with which its person sets a password.
    """
    person = User.objects.filter(email__iexact=email, left_at=None).first()
    if person is None:
        person = create_person(name=name, email=email, password=None, role=User.Role.ADMINISTRATOR)
        record_audit(None, AuditEntry.Action.PERSON_JOINED, person.role)
    else:
        User.objects.filter(pk=person.pk).update(role=User.Role.ADMINISTRATOR, is_active=True)
        person.refresh_from_db()
        record_audit(None, AuditEntry.Action.PERSON_MADE_ADMINISTRATOR, str(person.pk))
    return person, reset_link(person, by=None)


def open_links() -> QuerySet[Pass]:
    """Invitations and password links that can still be used.

    A link counts only while the administrator who made it is one: it was their right that it passes on.
    """
    its_author_may = Q(made_by=None) | Q(made_by__is_active=True, made_by__role=User.Role.ADMINISTRATOR)
    links = Pass.objects.exclude(kind=Pass.Kind.SETUP).filter(its_author_may)
    return links.filter(used_at=None, expires_at__gt=timezone.now())


@transaction.atomic
def revoke_link(link_id: int, *, by: User) -> bool:
    """Revoke an open invitation or password link; returns False where there is none of that id."""
    link = open_links().filter(pk=link_id).first()
    if link is None or not Pass.objects.filter(pk=link_id, used_at=None).delete()[0]:
        return False
    record_audit(by, AuditEntry.Action.LINK_REVOKED, f"{link.kind} {link.person_id or link.role}")
    return True


def validate_link(token: str, kind: str) -> Pass:
    """Return the link behind a token. Raises InvalidLinkError."""
    now = timezone.now()
    links = Pass.objects.filter(used_at=None, expires_at__gt=now) if kind == Pass.Kind.SETUP else open_links()
    found = links.filter(token_hash=hash_token(token), kind=kind).first()
    if found is None or (kind == Pass.Kind.SETUP and is_set_up()):
        raise InvalidLinkError
    return found


@transaction.atomic
def register(token: str, kind: str, *, name: str, email: str, password: str) -> User:
    """Make the account the pass allows, once. Raises InvalidLinkError."""
    return redeem_link(validate_link(token, kind), name=name, email=email, password=password)


def open_invitation(invitation_id: int) -> Pass:
    """Return the invitation, if it can still be used. Raises InvalidLinkError."""
    found = open_links().filter(kind=Pass.Kind.INVITATION, pk=invitation_id).first()
    if found is None:
        raise InvalidLinkError
    return found


@transaction.atomic
def redeem_link(found: Pass, *, name: str, email: str, password: str | None) -> User:
    """Make the account that this link allows, once. Raises InvalidLinkError."""
    _use(found)
    person = create_person(name=name, email=email, password=password, role=found.role)
    Pass.objects.filter(pk=found.pk).update(used_by=person)
    record_audit(person, AuditEntry.Action.PERSON_JOINED, found.role)
    return person


@transaction.atomic
def create_person(*, name: str, email: str, password: str | None, role: str = User.Role.MEMBER) -> User:
    """A new account with its own space; without a password, only a provider of identities signs them in."""
    person = User(name=clean_name(name), email=clean_text(email).strip().lower(), role=role)
    person.set_password(password)
    person.save()
    access.personal_space(person.id)
    access.team_space()
    return person


@transaction.atomic
def set_active(person_id: uuid.UUID, is_active: bool, *, by: User) -> None:
    """Activate or deactivate an account: open pages end within seconds. An account that was deleted stays closed.

    Raises LastAdministratorError, and PermissionDenied if `by` is no administrator any more.
    """
    administrators = _lock_administrators(by)
    if not is_active and administrators <= {person_id}:
        raise LastAdministratorError
    if not User.objects.filter(id=person_id, left_at=None).update(is_active=is_active, epoch=F("epoch") + 1):
        return
    if not is_active:
        person = User.objects.get(pk=person_id)
        _expire_links_of_author(person, by=by)
        _expire_links_for(person)
        reveals.end_all(person_id)
    record_audit(
        by, AuditEntry.Action.PERSON_ACTIVATED if is_active else AuditEntry.Action.PERSON_DEACTIVATED, str(person_id)
    )


@transaction.atomic
def change_password(person: User, password: str) -> None:
    """Set a new password and end every other sign-in; the one that asked has to be renewed.

    Password links made before no longer work: somebody else may hold one.
    """
    person.set_password(password)
    person.epoch += 1
    person.save(update_fields=["password", "epoch"])
    _expire_links_for(person)
    record_audit(person, AuditEntry.Action.PASSWORD_CHANGED, str(person.id))


def expire_links(person: User) -> None:
    """Remove the open links that this person made or that were made for them, as their account is deleted."""
    _expire_links_of_author(person, by=person)
    _expire_links_for(person)


@transaction.atomic
def sign_out_elsewhere(person: User) -> None:
    """End every other sign-in; the one that asked has to be renewed."""
    person.epoch += 1
    person.save(update_fields=["epoch"])
    record_audit(person, AuditEntry.Action.SESSION_OTHERS_ENDED, str(person.pk))


def record_audit(who: User | None, action: str, about: str) -> None:
    """Write a line into the audit log."""
    AuditEntry.objects.create(who=who, action=action, about=about[:200])


def _lock_administrators(by: User) -> set[uuid.UUID]:
    """Return the active administrators, locked until the end of the transaction, so that nobody else takes the role
    from one of them meanwhile. Raises PermissionDenied if `by` is not among them."""
    locked = User.objects.filter(role=User.Role.ADMINISTRATOR).select_for_update().order_by("id")
    list(locked.values_list("id"))
    # Read again: whoever held the locks before may have changed the rows.
    active = User.objects.filter(role=User.Role.ADMINISTRATOR, is_active=True)
    administrators = set(active.values_list("id", flat=True))
    if by.pk not in administrators:
        raise PermissionDenied
    return administrators


def _expire_links_of_author(person: User, *, by: User) -> None:
    count = Pass.objects.filter(made_by=person, used_at=None).delete()[0]
    if count:
        record_audit(by, AuditEntry.Action.LINK_ALL_REVOKED, f"{person.pk} {count}")


def _expire_links_for(person: User) -> None:
    Pass.objects.filter(kind=Pass.Kind.RESET, person=person, used_at=None).delete()


def _use(found: Pass, person: User | None = None) -> None:
    """Mark the link as used, unless it was used or revoked meanwhile. Raises InvalidLinkError."""
    # Whoever takes the role from its author locks that row too, so the one of the two that comes second sees the other.
    if found.made_by_id is not None:
        User.objects.select_for_update().get(pk=found.made_by_id)
    links = Pass.objects.filter(used_at=None) if found.kind == Pass.Kind.SETUP else open_links()
    if not links.filter(pk=found.pk).update(used_at=timezone.now(), used_by=person):
        raise InvalidLinkError


def _make_pass(kind: str, *, role: str, days: int, by: User | None, person: User | None = None) -> str:
    token = secrets.token_urlsafe(32)
    expires = timezone.now() + timedelta(days=days)
    Pass.objects.create(
        token_hash=hash_token(token), kind=kind, role=role, made_by=by, expires_at=expires, person=person
    )
    return token


def hash_token(token: str) -> str:
    """The hash under which a token or one-time link is stored."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
