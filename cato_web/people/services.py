"""Letting people in and out: the first account, invitations, passwords, deactivation."""

from __future__ import annotations

import hashlib
import secrets
import uuid
from datetime import timedelta

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _

from cato_web.people.models import AuditEntry, Pass, User
from memory import spaces
from memory.text import clean_text

INVITATION_DAYS = 7
RESET_DAYS = 1
_SETUP_DAYS = 365


class PassRefused(Exception):
    """The link is used, expired, or was never made."""

    def __init__(self) -> None:
        super().__init__(_("This link is used up, expired or wrong. Ask an administrator for a new one."))


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
def invite(*, by: User, role: str = User.Role.MEMBER) -> str:
    """A token with which one person may make an account; it is shown once and kept only as a hash."""
    token = _make_pass(Pass.Kind.INVITATION, role=role, days=INVITATION_DAYS, by=by)
    note(by, "invited", role)
    return token


@transaction.atomic
def reset_link(person: User, *, by: User) -> str:
    """A token with which this person sets a new password, in place of any earlier one."""
    Pass.objects.filter(kind=Pass.Kind.RESET, person=person, used_at=None).delete()
    token = _make_pass(Pass.Kind.RESET, role=person.role, days=RESET_DAYS, by=by, person=person)
    note(by, "made a password link", str(person.pk))
    return token


@transaction.atomic
def reset_password(token: str, password: str) -> User:
    """Set the password of whose link this is, once, and end every sign-in of theirs. Raises PassRefused."""
    found = check_pass(token, Pass.Kind.RESET)
    person = found.person
    if (
        person is None
        or not person.is_active
        or not Pass.objects.filter(pk=found.pk, used_at=None).update(used_at=timezone.now())
    ):
        raise PassRefused
    Pass.objects.filter(pk=found.pk).update(used_by=person)
    change_password(person, password)
    return person


@transaction.atomic
def set_role(person: User, role: str, *, by: User) -> None:
    """Make somebody an administrator, or no longer."""
    User.objects.filter(pk=person.pk).update(role=role)
    note(by, f"made {role}", str(person.pk))


@transaction.atomic
def withdraw_invitation(invitation_id: int, *, by: User) -> None:
    """Make an open invitation worthless."""
    if Pass.objects.filter(pk=invitation_id, kind=Pass.Kind.INVITATION, used_at=None).delete()[0]:
        note(by, "withdrew an invitation", str(invitation_id))


def check_pass(token: str, kind: str) -> Pass:
    """The pass behind a token. Raises PassRefused."""
    found = Pass.objects.filter(token_hash=_hash(token), kind=kind, used_at=None, expires_at__gt=timezone.now()).first()
    if found is None or (kind == Pass.Kind.SETUP and is_set_up()):
        raise PassRefused
    return found


@transaction.atomic
def join(token: str, kind: str, *, name: str, email: str, password: str) -> User:
    """Make the account the pass allows, once. Raises PassRefused."""
    return use_pass(check_pass(token, kind), name=name, email=email, password=password)


def open_invitation(invitation_id: int) -> Pass:
    """The invitation, if it can still be used. Raises PassRefused."""
    invitations = Pass.objects.filter(kind=Pass.Kind.INVITATION, used_at=None, expires_at__gt=timezone.now())
    found = invitations.filter(pk=invitation_id).first()
    if found is None:
        raise PassRefused
    return found


@transaction.atomic
def use_pass(found: Pass, *, name: str, email: str, password: str | None) -> User:
    """Make the account that this pass allows, once. Raises PassRefused."""
    if not Pass.objects.filter(pk=found.pk, used_at=None).update(used_at=timezone.now()):
        raise PassRefused
    person = create_person(name=name, email=email, password=password, role=found.role)
    Pass.objects.filter(pk=found.pk).update(used_by=person)
    note(person, "joined", found.role)
    return person


@transaction.atomic
def create_person(*, name: str, email: str, password: str | None, role: str = User.Role.MEMBER) -> User:
    """A new account with its own space; without a password, only a provider of identities signs them in."""
    person = User(name=clean_text(name).strip(), email=clean_text(email).strip().lower(), role=role)
    person.set_password(password)
    person.save()
    spaces.own(person.id)
    spaces.team()
    return person


@transaction.atomic
def set_active(person_id: uuid.UUID, is_active: bool, *, by: User) -> None:
    """Let a person in again, or out: their open pages end within seconds. Who deleted their account stays out."""
    if User.objects.filter(id=person_id, left_at=None).update(is_active=is_active, epoch=F("epoch") + 1):
        note(by, "activated" if is_active else "deactivated", str(person_id))


@transaction.atomic
def change_password(person: User, password: str) -> None:
    """Set a new password and end every other sign-in; the one that asked has to be renewed."""
    person.set_password(password)
    person.epoch += 1
    person.save(update_fields=["password", "epoch"])
    note(person, "changed password", str(person.id))


@transaction.atomic
def sign_out_elsewhere(person: User) -> None:
    """End every other sign-in; the one that asked has to be renewed."""
    person.epoch += 1
    person.save(update_fields=["epoch"])
    note(person, "signed out elsewhere", str(person.pk))


def note(who: User | None, action: str, about: str) -> None:
    """Write a line into the audit log."""
    AuditEntry.objects.create(who=who, action=action, about=about[:200])


def _make_pass(kind: str, *, role: str, days: int, by: User | None, person: User | None = None) -> str:
    token = secrets.token_urlsafe(32)
    expires = timezone.now() + timedelta(days=days)
    Pass.objects.create(token_hash=_hash(token), kind=kind, role=role, made_by=by, expires_at=expires, person=person)
    return token


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
