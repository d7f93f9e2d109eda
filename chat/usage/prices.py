"""Prices of models, and what usage costs. A price applies to what is counted from then on, never to the past."""

from __future__ import annotations

from decimal import Decimal

from django.db import transaction
from django.utils.translation import gettext as _

from chat.llm.usage_counts import UsageCounts
from chat.models import ModelPrice, UsageSettings
from memory.api import InvalidInputError, clean_name, clean_text, format_number

_MILLION = Decimal(1_000_000)
MAX_PRICE = Decimal(1_000_000)  # for a million tokens
PLACES = 4  # decimal places of `ModelPrice` and `UsageLimit`


def list_prices() -> list[ModelPrice]:
    """Return the prices by the names of the models."""
    return list(ModelPrice.objects.order_by("model"))


def prices_by_model() -> dict[str, ModelPrice]:
    """Return the prices with the names of the models as keys."""
    return {price.model: price for price in ModelPrice.objects.all()}


def set_price(model: str, *, input_price: Decimal, output_price: Decimal, cached_price: Decimal | None) -> ModelPrice:
    """Set the price of a million tokens of each kind; `cached_price` None: cached input costs as other input.

    Raises InvalidInputError for a price below 0, above `MAX_PRICE`, or with more decimal places than are stored.
    """
    given = [price for price in (input_price, output_price, cached_price) if price is not None]
    if not all(price.is_finite() and 0 <= price <= MAX_PRICE and price == round(price, PLACES) for price in given):
        sentence = _("A price is a number from 0 to %(most)s with at most four decimal places.")
        raise InvalidInputError(sentence % {"most": format_number(float(MAX_PRICE))})
    fields = {"input_price": input_price, "output_price": output_price, "cached_price": cached_price}
    price, _is_new = ModelPrice.objects.update_or_create(model=clean_text(model).strip(), defaults=fields)
    return price


def delete_price(model: str) -> None:
    """Delete the price of this model; its usage is counted without a cost from now on."""
    ModelPrice.objects.filter(model=model).delete()


def cost_of(counts: UsageCounts, price: ModelPrice | None) -> Decimal | None:
    """Return what this usage costs, in the currency of the prices; None if the price is unknown."""
    if price is None:
        return None
    cached_price = price.input_price if price.cached_price is None else price.cached_price
    cost = (
        (counts.prompt_tokens - counts.cached_tokens) * price.input_price
        + counts.cached_tokens * cached_price
        + counts.completion_tokens * price.output_price
    )
    return cost / _MILLION


def get_currency() -> str:
    """Return the name of the currency, "" if none is set."""
    row = UsageSettings.objects.first()
    return row.currency if row else ""


@transaction.atomic
def set_currency(name: str) -> None:
    """Set the name of the currency, such as EUR; amounts are not converted."""
    UsageSettings.objects.all().delete()
    if name := clean_name(name)[:12]:
        UsageSettings.objects.create(currency=name)


def format_money(amount: Decimal, currency: str) -> str:
    """Return an amount such as 1.20 EUR, with four decimal places below 0.01."""
    places = 4 if 0 < abs(amount) < Decimal("0.01") else 2
    return f"{format_number(float(amount), places)} {currency}".strip()


def format_price(price: Decimal, currency: str) -> str:
    """Return a price such as 1.20 EUR or 0.075 EUR, with all of its decimal places."""
    places = max(2, -int(price.normalize().as_tuple().exponent))
    return f"{format_number(float(price), places)} {currency}".strip()
