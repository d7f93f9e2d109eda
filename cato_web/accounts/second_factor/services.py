"""Who has a second factor and who must have one; adding and removing it, with the audit log."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import F
from django.http import HttpRequest
from django.utils.translation import gettext as _

from cato_web.accounts.models import AuditEntry, AuthenticatorApp, Passkey, RecoveryCode, User
from cato_web.accounts.second_factor import codes, passkeys
from cato_web.accounts.services import record_audit
from memory.api import InvalidInputError

_Action = AuditEntry.Action


class LastFactorError(Exception):
    """The person must have a second factor, and this is the only one."""

    def __init__(self) -> None:
        super().__init__(_("You need a second factor here, and this is your only one. Add another one first."))


def has_app(person: User) -> bool:
    """Return whether the person has an authenticator app."""
    return AuthenticatorApp.objects.filter(person=person).exists()


def has_second_factor(person: User) -> bool:
    """Return whether the person has an authenticator app or a passkey."""
    return has_app(person) or Passkey.objects.filter(person=person).exists()


def ids_with_second_factor() -> set[uuid.UUID]:
    """Return the ids of everybody with a second factor."""
    apps = AuthenticatorApp.objects.values_list("person_id", flat=True)
    return set(apps.union(Passkey.objects.order_by().values_list("person_id", flat=True)))


@transaction.atomic
def add_app(person: User, *, secret: str, code: str) -> bool:
    """Add the authenticator app that shows `code`; return False if the code is wrong."""
    if not codes.save_app(person, secret, code):
        return False
    record_audit(person, _Action.AUTHENTICATOR_APP_ADDED, str(person.pk))
    return True


@transaction.atomic
def add_passkey(request: HttpRequest, person: User, *, name: str, answer: str) -> None:
    """Add the passkey that the browser made. Raises PasskeyRejectedError and InvalidInputError."""
    if Passkey.objects.filter(person=person).count() >= passkeys.MAX_PASSKEYS:
        raise InvalidInputError(_("You have 20 passkeys. Delete one first."))
    passkeys.register(request, person, name=name, answer=answer)
    record_audit(person, _Action.PASSKEY_ADDED, str(person.pk))


@transaction.atomic
def remove_app(person: User) -> bool:
    """Remove the authenticator app; return False if there is none. Raises LastFactorError."""
    _lock(person)
    if not AuthenticatorApp.objects.filter(person=person).delete()[0]:
        return False
    _after_removal(person, _Action.AUTHENTICATOR_APP_REMOVED)
    return True


@transaction.atomic
def delete_passkey(person: User, passkey: Passkey) -> None:
    """Delete one of the person's passkeys. Raises LastFactorError."""
    _lock(person)
    Passkey.objects.filter(person=person, pk=passkey.pk).delete()
    _after_removal(person, _Action.PASSKEY_DELETED)


@transaction.atomic
def create_recovery_codes(person: User) -> list[str]:
    """Return new recovery codes, which replace the earlier ones."""
    record_audit(person, _Action.RECOVERY_CODES_CREATED, str(person.pk))
    return codes.replace_recovery_codes(person)


@transaction.atomic
def redeem_recovery_code(person: User, code: str) -> bool:
    """Return whether this was an unused recovery code; it is used now."""
    if not codes.redeem_recovery_code(person, code):
        return False
    record_audit(person, _Action.RECOVERY_CODE_USED, str(person.pk))
    return True


def accept_code(person: User, code: str) -> bool:
    """Return whether this is a code of the person's app or a recovery code; it is used now."""
    compact = "".join(code.split())
    if len(compact) == 6 and compact.isascii() and compact.isdigit():
        return codes.accept_app_code(person, compact)
    return redeem_recovery_code(person, compact)


@transaction.atomic
def remove_second_factor(person: User, *, by: User | None) -> bool:
    """Remove everything a person has as second factor and end their login sessions; return False if it was nothing.

    `by` is None on the server's command line.
    """
    if not delete_all(person):
        return False
    User.objects.filter(pk=person.pk).update(epoch=F("epoch") + 1)
    record_audit(by, _Action.SECOND_FACTOR_REMOVED, str(person.pk))
    return True


def delete_all(person: User) -> int:
    """Delete the second factor of an account without a trace; return the number of rows."""
    models = (AuthenticatorApp, Passkey, RecoveryCode)
    return sum(model.objects.filter(person=person).delete()[0] for model in models)


def _lock(person: User) -> None:
    """Serialize two removals, so that each sees whether it is the last."""
    User.objects.select_for_update().get(pk=person.pk)


def _after_removal(person: User, action: str) -> None:
    if not has_second_factor(person):
        if person.requires_second_factor:
            raise LastFactorError
        RecoveryCode.objects.filter(person=person).delete()
    record_audit(person, action, str(person.pk))
