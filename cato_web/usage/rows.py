"""What the pages of usage show: sums, months, limits and prices as texts."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlencode

from django.urls import reverse
from django.utils import formats
from django.utils.translation import gettext as _

from cato_web.usage.forms import target_value
from cato_web.usage.names import limit_name, names_of
from chat.usage.counting import month_start
from chat.usage.limits import format_amount, list_limits
from chat.usage.prices import format_money, format_price, get_currency, list_prices
from chat.usage.reports import EVERYBODY, UsageFilter, UsageSum, months_with_usage, total_usage, usage_by
from memory.api import format_number


@dataclass(frozen=True, slots=True)
class UsageRow:
    """A sum of usage as texts; `note` says what of it is estimated or has no price."""

    name: str
    requests: str
    prompt_tokens: str
    cached_tokens: str
    completion_tokens: str
    cost: str
    note: str


@dataclass(frozen=True, slots=True)
class MonthChoice:
    """A month to choose; `value` is such as 2026-11."""

    value: str
    label: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class LimitSettingRow:
    """A limit; `value` names its target in the forms."""

    value: str
    name: str
    soft: str
    hard: str
    edit_url: str


@dataclass(frozen=True, slots=True)
class PriceRow:
    """The price of a million tokens of a model."""

    model: str
    input_price: str
    cached_price: str
    output_price: str
    edit_url: str


def parse_month(text: str) -> date:
    """Return the first day of a month such as 2026-11; this month if the text is no month of this century."""
    try:
        month = date.fromisoformat(f"{text}-01")
    except ValueError:
        return month_start()
    return month if month.year // 100 == 20 else month_start()


def month_choices(chosen: date, of: UsageFilter = EVERYBODY) -> list[MonthChoice]:
    """Return the months with usage, this month and the chosen one, the latest first."""
    months = sorted({*months_with_usage(of), month_start(), chosen}, reverse=True)
    return [MonthChoice(f"{m:%Y-%m}", formats.date_format(m, "YEAR_MONTH_FORMAT"), m == chosen) for m in months]


def usage_rows(
    by: str, month: date, of: UsageFilter = EVERYBODY, *, reader_id: uuid.UUID | None = None
) -> Sequence[UsageRow]:
    """Return the sums of a month by a dimension, the largest first, with the names that `names_of` gives this reader."""
    sums = usage_by(by, month, of)
    names = names_of(by, [row.key for row in sums], reader_id=reader_id)
    currency = get_currency()
    return [_row(row, names[row.key], currency) for row in sums]


def usage_total(month: date, of: UsageFilter = EVERYBODY) -> UsageRow:
    """Return the sum of a month."""
    return _row(total_usage(month, of), _("Total"), get_currency())


def limit_setting_rows() -> list[LimitSettingRow]:
    """Return all limits."""
    currency = get_currency()
    rows = []
    for limit in list_limits():
        soft, hard = (
            "" if amount is None else format_amount(amount, limit.unit, currency) for amount in (limit.soft, limit.hard)
        )
        url = f"{reverse('admin_limits')}?{urlencode({'target': target_value(limit)})}#limit"
        rows.append(LimitSettingRow(target_value(limit), limit_name(limit), soft, hard, url))
    return rows


def price_rows() -> list[PriceRow]:
    """Return all prices."""
    currency = get_currency()
    return [
        PriceRow(
            price.model,
            format_price(price.input_price, currency),
            "" if price.cached_price is None else format_price(price.cached_price, currency),
            format_price(price.output_price, currency),
            f"{reverse('admin_limits')}?{urlencode({'model': price.model})}#price",
        )
        for price in list_prices()
    ]


def _row(row: UsageSum, name: str, currency: str) -> UsageRow:
    cost = row.known_cost
    notes = []
    if row.estimated_tokens:
        notes.append(_("%(count)s tokens estimated") % {"count": format_number(row.estimated_tokens)})
    if row.unpriced_tokens and cost is not None:
        notes.append(_("%(count)s tokens without a price") % {"count": format_number(row.unpriced_tokens)})
    return UsageRow(
        name,
        format_number(row.requests),
        format_number(row.prompt_tokens),
        format_number(row.cached_tokens),
        format_number(row.completion_tokens),
        _("unknown") if cost is None else format_money(cost, currency),
        " · ".join(notes),
    )
