"""Changes of limits and prices by administrators, with an entry in the audit log."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from cato_web.accounts.models import ApiToken, AuditEntry, User
from cato_web.accounts.services import record_audit
from chat.models import UsageLimit
from chat.usage import limits, prices
from memory.api import InvalidInputError, Space

_TARGETS: dict[str, QuerySet[Any]] = {
    UsageLimit.Target.PERSON: User.objects.filter(left_at=None),
    UsageLimit.Target.SPACE: Space.objects.exclude(kind=Space.Kind.PERSONAL),
    UsageLimit.Target.TOKEN: ApiToken.objects.all(),
}


@transaction.atomic
def set_limit(
    target: str, target_id: uuid.UUID | None, *, unit: str, soft: Decimal | None, hard: Decimal | None, by: User
) -> None:
    """Set a limit, or remove it if both amounts are None. Raises InvalidInputError, also for an unknown target."""
    rows = _TARGETS.get(target)
    is_removed = soft is None and hard is None
    if rows is not None and not is_removed and not rows.filter(pk=target_id).exists():
        raise InvalidInputError(_("There is no such person, group or token."))
    limits.set_limit(target, target_id, unit=unit, soft=soft, hard=hard)
    amounts = "removed" if is_removed else f"{_listed(notice=soft, limit=hard)} {unit}"
    _record(by, f"the usage limit of {f'{target} {target_id}' if target_id else target}: {amounts}")


@transaction.atomic
def set_price(
    model: str, *, input_price: Decimal, output_price: Decimal, cached_price: Decimal | None, by: User
) -> None:
    """Set the price of a model. Raises InvalidInputError."""
    prices.set_price(model, input_price=input_price, output_price=output_price, cached_price=cached_price)
    _record(by, f"the price of {model}: {_listed(input=input_price, cached=cached_price, output=output_price)}")


@transaction.atomic
def delete_price(model: str, *, by: User) -> None:
    """Delete the price of a model."""
    prices.delete_price(model)
    _record(by, f"the price of {model}: removed")


@transaction.atomic
def set_currency(name: str, *, by: User) -> None:
    """Set the currency of all prices."""
    prices.set_currency(name)
    _record(by, f"the currency of prices: {name}")


def _listed(**amounts: Decimal | None) -> str:
    """Return the amounts that are set, each after its name."""
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items() if amount is not None)


def _record(by: User, target: str) -> None:
    record_audit(by, AuditEntry.Action.SETTINGS_CHANGED, target)
