"""Sums of usage: of a month, by person, space, model, API token or purpose."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.db.models import DecimalField, QuerySet, Sum
from django.db.models.functions import TruncMonth

from chat.models import UsageDay
from chat.usage.counting import next_month

DIMENSIONS = {
    "person": "person_id",
    "space": "space_id",
    "model": "model",
    "token": "api_token_id",
    "purpose": "purpose",
}
_COUNTS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens", "estimated_tokens", "unpriced_tokens")
_MONEY = DecimalField(max_digits=30, decimal_places=9)


@dataclass(frozen=True, slots=True)
class UsageFilter:
    """The person, space and token whose usage is summed; None: everybody's."""

    person_id: uuid.UUID | None = None
    space_id: uuid.UUID | None = None
    api_token_id: uuid.UUID | None = None

    def rows(self) -> QuerySet[UsageDay]:
        """Return the rows of this usage."""
        fields = {"person_id": self.person_id, "space_id": self.space_id, "api_token_id": self.api_token_id}
        return UsageDay.objects.filter(**{name: id for name, id in fields.items() if id is not None})


EVERYBODY = UsageFilter()


@dataclass(frozen=True, slots=True)
class UsageSum:
    """A sum of usage; `key` is an id, a model or a purpose, None if the usage belongs to none, or of the total.

    `cost` is without the `unpriced_tokens`, whose model had no price.
    """

    key: Any
    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    estimated_tokens: int = 0
    unpriced_tokens: int = 0
    cost: Decimal = Decimal(0)

    @property
    def tokens(self) -> int:
        """The tokens of prompts and completions."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def known_cost(self) -> Decimal | None:
        """The cost; None if nothing of it is known."""
        return None if self.tokens and self.unpriced_tokens >= self.tokens else self.cost


def usage_by(dimension: str, month: date, of: UsageFilter = EVERYBODY) -> list[UsageSum]:
    """Return the sums of a month by one of `DIMENSIONS`, the largest first; `month` is its first day."""
    column = DIMENSIONS[dimension]
    rows = _of_month(of, month).values(column).annotate(**_sums()).order_by(column)
    sums = [UsageSum(row.pop(column), **row) for row in rows]
    return sorted(sums, key=lambda row: (row.cost, row.tokens), reverse=True)


def total_usage(month: date, of: UsageFilter = EVERYBODY) -> UsageSum:
    """Return the sum of a month."""
    row: dict[str, Any] = _of_month(of, month).aggregate(**_sums())
    return UsageSum(None, **{name: value for name, value in row.items() if value is not None})


def months_with_usage(of: UsageFilter = EVERYBODY) -> list[date]:
    """Return the first days of the months with usage, the latest first."""
    months = of.rows().order_by().annotate(month=TruncMonth("date")).values_list("month", flat=True).distinct()
    return sorted(months, reverse=True)


def usage_days(month: date) -> QuerySet[UsageDay]:
    """Return the rows of a month in the order of their days."""
    return _of_month(EVERYBODY, month).order_by("date", "id")


def usage_rows_of(person_id: uuid.UUID) -> QuerySet[UsageDay]:
    """Return all rows of this person."""
    return UsageFilter(person_id=person_id).rows().order_by("date", "id")


def _of_month(of: UsageFilter, month: date) -> QuerySet[UsageDay]:
    return of.rows().filter(date__gte=month, date__lt=next_month(month))


def _sums() -> dict[str, Sum]:
    return {name: Sum(name) for name in _COUNTS} | {"cost": Sum("cost", output_field=_MONEY)}
