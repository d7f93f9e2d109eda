"""Limits of usage in a calendar month, for people, groups and API tokens.

A limit is checked before something new is requested of a model: before a message is posted or an answer begins anew, and
before a title or an extraction. What has begun always ends. Without any limit the check costs no statement: the rows that
are read anyway say whether there is one (`any_limit`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time
from decimal import Decimal
from typing import Any

from django.db.models import DecimalField, Exists, F, Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat import metrics
from chat.errors import UsageLimitError
from chat.llm.usage_counts import UsageCounts
from chat.models import ModelPrice, UsageDay, UsageLimit
from chat.usage.counting import UsageKey, month_start, next_month, uncounted_usage, usage_date
from chat.usage.prices import PLACES, cost_of, format_money, format_price, get_currency, prices_by_model
from memory.api import InvalidInputError, Space, format_date, format_number

LIMIT_REACHED = "limit_reached"  # the error code of a queued message whose answer would have begun above a limit
Target, Unit = UsageLimit.Target, UsageLimit.Unit
MAX_AMOUNT = Decimal(10**15)
_COLUMNS = {
    Target.PERSON: "person_id",
    Target.EVERYONE: "person_id",
    Target.SPACE: "space_id",
    Target.TOKEN: "api_token_id",
}


@dataclass(frozen=True, slots=True)
class LimitState:
    """A limit and what of it is used in this month; `name` is that of the group, otherwise empty."""

    limit: UsageLimit
    used: Decimal
    currency: str
    resets_at: datetime
    name: str = ""

    @property
    def is_reached(self) -> bool:
        """Return whether nothing more may be requested."""
        return self.limit.hard is not None and self.used >= self.limit.hard

    @property
    def is_above_soft(self) -> bool:
        """Return whether there is a notice."""
        return self.limit.soft is not None and self.used >= self.limit.soft

    @property
    def most(self) -> Decimal:
        """The amount that cannot be exceeded, or else that of the notice."""
        return self.limit.hard if self.limit.hard is not None else self.limit.soft or Decimal(0)

    @property
    def facts(self) -> dict[str, str]:
        """The texts of `used`, without its unit, and of `most`, with it, and the `name`, for a sentence."""
        is_money = self.limit.unit == Unit.MONEY
        used = format_money(self.used, "") if is_money else format_number(float(self.used))
        return {"used": used, "most": format_amount(self.most, self.limit.unit, self.currency), "name": self.name}


def format_amount(amount: Decimal, unit: str, currency: str) -> str:
    """Return an amount of money, with all of its decimal places, or of tokens."""
    if unit == Unit.MONEY:
        return format_price(amount, currency)
    return ngettext("%(count)s token", "%(count)s tokens", int(amount)) % {"count": format_number(float(amount))}


def any_limit() -> Exists:
    """Return the condition that there is any limit, to be read with another row."""
    return Exists(UsageLimit.objects.all())


def has_limits(row: Any) -> bool:
    """Return what `any_limit` has read with this row as `has_usage_limits`."""
    return bool(row.has_usage_limits)


def limit_states(
    *, person_id: uuid.UUID | None = None, space: Space | None = None, api_token_id: uuid.UUID | None = None
) -> list[LimitState]:
    """Return the limits that apply to this person, this space and this token, and what of them is used.

    The limit of a person replaces that of everyone.
    """
    targets = Q(target=Target.EVERYONE) if person_id is not None else Q(pk__in=[])
    for target, id in ((Target.PERSON, person_id), (Target.SPACE, space and space.id), (Target.TOKEN, api_token_id)):
        if id is not None:
            targets |= Q(target=target, target_id=id)
    limits = list(UsageLimit.objects.filter(targets).order_by("target"))
    if any(limit.target == Target.PERSON for limit in limits):
        limits = [limit for limit in limits if limit.target != Target.EVERYONE]
    if not limits:
        return []
    uncounted = uncounted_usage(person_id, space.id if space else None, api_token_id)
    prices = prices_by_model() if uncounted else {}
    currency, resets_at = get_currency(), next_reset()
    return [
        LimitState(
            limit,
            _used(limit, limit.target_id or person_id, uncounted, prices),
            currency,
            resets_at,
            space.display_name if space is not None and limit.target == Target.SPACE else "",
        )
        for limit in limits
    ]


def ensure_within_limits(
    person: Any, *, space: Space | None, api_token_id: uuid.UUID | None = None, by: uuid.UUID | None = None
) -> None:
    """Raise UsageLimitError if this person, or the group or token, has used the hard limit of this month.

    `person` pays, and is read with `any_limit` as `has_usage_limits`. `by` is who acts; None: the same person.
    """
    if has_limits(person):
        check_limits(person.pk, space=space, api_token_id=api_token_id, is_own=by in (None, person.pk))


def check_limits(
    person_id: uuid.UUID, *, space: Space | None, api_token_id: uuid.UUID | None = None, is_own: bool = True
) -> None:
    """Raise UsageLimitError as `ensure_within_limits`, for a person who is not locked; takes at least one statement."""
    states = limit_states(person_id=person_id, space=space, api_token_id=api_token_id)
    reached = next((state for state in states if state.is_reached), None)
    if reached is not None:
        metrics.USAGE_LIMITS.labels("hard").inc()
        seconds = int((reached.resets_at - timezone.now()).total_seconds()) + 1
        raise UsageLimitError(_reached_text(reached, is_own=is_own), max(1, seconds))
    if any(state.is_above_soft for state in states):
        metrics.USAGE_LIMITS.labels("soft").inc()


def is_limit_reached(
    *, person_id: uuid.UUID | None, space: Space | None, api_token_id: uuid.UUID | None = None
) -> bool:
    """Return whether a title or an extraction has to be left out."""
    if not UsageLimit.objects.exists():
        return False
    states = limit_states(person_id=person_id, space=space, api_token_id=api_token_id)
    return any(state.is_reached for state in states)


def set_limit(
    target: str, target_id: uuid.UUID | None, *, unit: str, soft: Decimal | None, hard: Decimal | None
) -> UsageLimit | None:
    """Set the limit of a target, or remove it if both amounts are None. Raises InvalidInputError."""
    if target not in Target.values or unit not in Unit.values or (target_id is None) != (target == Target.EVERYONE):
        raise InvalidInputError(_("There is no such limit."))
    given = [amount for amount in (soft, hard) if amount is not None]
    if not all(each.is_finite() and 0 <= each <= MAX_AMOUNT and each == round(each, PLACES) for each in given):
        sentence = _("A limit is a number from 0 to %(most)s with at most four decimal places.")
        raise InvalidInputError(sentence % {"most": format_number(float(MAX_AMOUNT))})
    if soft is not None and hard is not None and soft > hard:
        raise InvalidInputError(_("The notice cannot come after the limit: enter a smaller number for it."))
    rows = UsageLimit.objects.filter(target=target, target_id=target_id)
    if soft is None and hard is None:
        rows.delete()
        return None
    fields = {"unit": unit, "soft": soft, "hard": hard}
    limit, _is_new = UsageLimit.objects.update_or_create(target=target, target_id=target_id, defaults=fields)
    return limit


def list_limits() -> QuerySet[UsageLimit]:
    """Return all limits."""
    return UsageLimit.objects.order_by("target", "id")


def delete_limits_of(ids: Sequence[uuid.UUID]) -> None:
    """Delete the limits of a person, a group or tokens that were deleted."""
    UsageLimit.objects.filter(target_id__in=list(ids)).delete()


def next_reset() -> datetime:
    """Return when the usage of all limits begins again."""
    return datetime.combine(next_month(usage_date()), time(), UTC)


def _used(
    limit: UsageLimit,
    id: uuid.UUID | None,
    uncounted: Iterable[tuple[UsageKey, UsageCounts]],
    prices: Mapping[str, ModelPrice],
) -> Decimal:
    """Return what this person, space or token used in this month, with what is not added to the days yet."""
    column = _COLUMNS[Target(limit.target)]
    rows = UsageDay.objects.filter(date__gte=month_start(), **{column: id})
    amount = F("cost") if limit.unit == Unit.MONEY else F("prompt_tokens") + F("completion_tokens")
    used = rows.aggregate(used=Sum(amount, output_field=DecimalField(max_digits=30, decimal_places=9)))["used"]
    total = used or Decimal(0)
    for key, counts in uncounted:
        if key.date >= month_start() and getattr(key, column) == id:
            cost = cost_of(counts, prices.get(key.model)) or Decimal(0)
            total += cost if limit.unit == Unit.MONEY else counts.tokens
    return total


def _reached_text(state: LimitState, *, is_own: bool) -> str:
    if state.limit.target == Target.SPACE:
        sentence = _(
            "The monthly limit of the space %(name)s is reached: %(used)s of %(most)s are used. "
            "It resets on %(day)s at 00:00 UTC."
        )
    elif not is_own:
        sentence = _(
            "The person who wrote this message has reached their monthly limit. It resets on %(day)s at 00:00 UTC."
        )
    elif state.limit.target == Target.TOKEN:
        sentence = _(
            "The monthly limit of this API token is reached: %(used)s of %(most)s are used. "
            "It resets on %(day)s at 00:00 UTC."
        )
    else:
        sentence = _("Your monthly limit is reached: %(used)s of %(most)s are used. It resets on %(day)s at 00:00 UTC.")
    return sentence % (state.facts | {"day": format_date(state.resets_at)})
