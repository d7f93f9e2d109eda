"""Who is an administrator, and who may sign in: one active administrator always remains."""

from __future__ import annotations

import logging
import uuid

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from cato_web.accounts import services
from cato_web.accounts.models import AuditEntry, User
from memory import api as memory

log = logging.getLogger(__name__)

_ROLE_ACTIONS = {
    User.Role.ADMINISTRATOR: AuditEntry.Action.PERSON_MADE_ADMINISTRATOR,
    User.Role.MEMBER: AuditEntry.Action.PERSON_MADE_MEMBER,
}


class LastAdministratorError(Exception):
    """The change would leave no active administrator."""

    def __init__(self) -> None:
        super().__init__(_("This is the only administrator left. Make somebody else an administrator first."))


@transaction.atomic
def set_role(person: User, role: str, *, by: User) -> None:
    """Make a user an administrator or a member.

    Raises LastAdministratorError, and PermissionDenied if `by` is no longer an administrator.
    """
    administrators = _lock_administrators(by)
    if role != User.Role.ADMINISTRATOR:
        if administrators <= {person.pk}:
            raise LastAdministratorError
        services.expire_links_of_author(person, by=by)
        memory.end_all_reveals(person.pk)
    User.objects.filter(pk=person.pk).update(role=role, is_role_synchronised=False)
    services.record_audit(by, _ROLE_ACTIONS[User.Role(role)], str(person.pk))


@transaction.atomic
def synchronise_role(person: User, *, is_administrator: bool) -> None:
    """Make a person an administrator as the identity provider says, or take back what it said before.

    The last administrator stays one.
    """
    administrators = _lock_all_administrators()
    current = User.objects.select_for_update().get(pk=person.pk)
    if is_administrator and not current.is_administrator:
        role = User.Role.ADMINISTRATOR
    elif not is_administrator and current.is_administrator and current.is_role_synchronised:
        if administrators <= {person.pk}:
            log.warning("the last administrator stays one, although the identity provider says otherwise")
            return
        role = User.Role.MEMBER
        services.expire_links_of_author(person, by=person)
        memory.end_all_reveals(person.pk)
    else:
        return
    User.objects.filter(pk=person.pk).update(role=role, is_role_synchronised=is_administrator)
    person.role = role
    services.record_audit(None, _ROLE_ACTIONS[role], str(person.pk))


@transaction.atomic
def make_administrator(email: str, name: str) -> tuple[User, str]:
    """Make the account with this email an active administrator, creating it if necessary.

    For the server's command line. Returns the account and a token for setting a password.
    """
    person = User.objects.filter(email__iexact=email, left_at=None).first()
    if person is None:
        person = services.create_person(name=name, email=email, password=None, role=User.Role.ADMINISTRATOR)
        services.record_audit(None, AuditEntry.Action.PERSON_JOINED, person.role)
    else:
        User.objects.filter(pk=person.pk).update(role=User.Role.ADMINISTRATOR, is_active=True)
        person.refresh_from_db()
        services.record_audit(None, AuditEntry.Action.PERSON_MADE_ADMINISTRATOR, str(person.pk))
    return person, services.reset_link(person, by=None)


@transaction.atomic
def set_active(person_id: uuid.UUID, is_active: bool, *, by: User) -> None:
    """Activate or deactivate an account; its open pages close within seconds. Deleted accounts do not change.

    Raises LastAdministratorError, and PermissionDenied if `by` is no longer an administrator.
    """
    administrators = _lock_administrators(by)
    if not is_active and administrators <= {person_id}:
        raise LastAdministratorError
    if not User.objects.filter(id=person_id, left_at=None).update(is_active=is_active, epoch=F("epoch") + 1):
        return
    if not is_active:
        person = User.objects.get(pk=person_id)
        services.expire_links(person, by=by)
        memory.end_all_reveals(person_id)
    services.record_audit(
        by, AuditEntry.Action.PERSON_ACTIVATED if is_active else AuditEntry.Action.PERSON_DEACTIVATED, str(person_id)
    )


def _lock_administrators(by: User) -> set[uuid.UUID]:
    """Return the active administrators, locked until the transaction ends.

    Raises PermissionDenied if `by` is not among them.
    """
    administrators = _lock_all_administrators()
    if by.pk not in administrators:
        raise PermissionDenied
    return administrators


def _lock_all_administrators() -> set[uuid.UUID]:
    """Return the active administrators; those who are not active are locked, too."""
    locked = User.objects.filter(role=User.Role.ADMINISTRATOR).select_for_update().order_by("id")
    list(locked.values_list("id"))
    # Read again: a previous holder of the locks may have changed the rows.
    active = User.objects.filter(role=User.Role.ADMINISTRATOR, is_active=True)
    return set(active.values_list("id", flat=True))
