"""Operations: the usage of models, and for administrators its limits and prices."""

from __future__ import annotations

import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from ninja import Query, Router
from pydantic import Field

from cato_web.api.administration import require_administrator
from cato_web.api.auth import READ, WRITE, ApiRequest, current_user
from cato_web.api.errors import responses
from cato_web.api.fields import Text
from cato_web.api.schemas import RequestModel, ResponseModel
from cato_web.usage import changes
from cato_web.usage.names import limit_name, names_of
from chat.models import ModelPrice, UsageLimit
from chat.usage.counting import month_start
from chat.usage.limits import LimitState, limit_states, list_limits, next_reset
from chat.usage.prices import MAX_PRICE, get_currency, list_prices
from chat.usage.reports import UsageFilter, UsageSum, total_usage, usage_by

router = Router(tags=["usage"])
Month = Annotated[
    str | None,
    Query(pattern=r"^20\d\d-(0[1-9]|1[0-2])$", description="Such as 2026-11, in UTC; default: this month."),
]
Dimension = Literal["person", "space", "model", "token", "purpose"]
Amount = Annotated[float, Field(ge=0, le=1e15)]
Price = Annotated[float, Field(ge=0, le=float(MAX_PRICE))]


class UsageCounts(ResponseModel):
    """Requests to models, their tokens and their cost."""

    requests: int
    prompt_tokens: int
    cached_tokens: int = Field(description="Those of the prompt tokens that were cached.")
    completion_tokens: int
    estimated_tokens: int = Field(description="Those that the endpoint did not report.")
    unpriced_tokens: int = Field(description="Those whose model had no price.")
    cost: float | None = Field(description="Of the other tokens, at their prices then; null if all have no price.")


class UsageRow(UsageCounts):
    """The usage of one person, space, model, token or purpose."""

    key: str | None = Field(description="The ID or name; null: of none, or of deleted people.")
    name: str


class LimitStatus(ResponseModel):
    """A monthly limit that applies to the user, and what of it is used."""

    target: str = Field(description="everyone, person, space or token")
    unit: str = Field(description="tokens or money")
    used: float
    soft: float | None = Field(description="From here on there is a notice.")
    hard: float | None = Field(description="From here on no message can be sent.")
    resets_at: datetime


class Usage(ResponseModel):
    """The usage of a month."""

    month: str
    currency: str
    total: UsageCounts
    rows: list[UsageRow]
    limits: list[LimitStatus] = Field(description="Of the user and the token of this request; of now.")


class EveryonesUsage(ResponseModel):
    """The usage of everybody in a month."""

    month: str
    currency: str
    total: UsageCounts
    rows: list[UsageRow]


class Limit(ResponseModel):
    """A monthly limit."""

    target: str = Field(description="everyone, person, space or token")
    target_id: uuid.UUID | None = Field(description="null: each person without a limit of their own.")
    name: str
    unit: str = Field(description="tokens or money")
    soft: float | None
    hard: float | None


class Limits(ResponseModel):
    """All limits and when they reset."""

    limits: list[Limit]
    resets_at: datetime


class NewLimit(RequestModel):
    """A monthly limit; without amounts it is removed."""

    target: Literal["everyone", "person", "space", "token"]
    target_id: uuid.UUID | None = None
    unit: Literal["tokens", "money"] = "tokens"
    soft: Amount | None = Field(default=None, description="From here on there is a notice.")
    hard: Amount | None = Field(default=None, description="From here on no message can be sent.")


class PriceOfModel(ResponseModel):
    """The price of a million tokens of a model."""

    model: str
    input: float
    cached_input: float | None = Field(description="null: as input.")
    output: float


class Prices(ResponseModel):
    """The prices of all models and their currency."""

    currency: str
    prices: list[PriceOfModel]


class NewPrice(RequestModel):
    """The price of a million tokens of a model, which counts from now on."""

    model: Annotated[Text, Field(min_length=1, max_length=120)]
    input: Price
    cached_input: Price | None = None
    output: Price


@router.get("/usage", auth=READ, response=responses(Usage))
def get_usage(
    request: ApiRequest,
    month: Month = None,
    by: Annotated[Dimension, Query()] = "model",
) -> Usage:
    """Return the user's model usage in a month, and the limits that apply to this request."""
    person_id, of = current_user(request).pk, UsageFilter(person_id=current_user(request).pk)
    states = limit_states(person_id=person_id, api_token_id=request.auth.token_id)
    return Usage(**_usage(month, by, of, reader_id=person_id), limits=[_status(state) for state in states])


@router.get("/admin/usage", auth=READ, response=responses(EveryonesUsage))
def get_everyones_usage(
    request: ApiRequest,
    month: Month = None,
    by: Annotated[Dimension, Query()] = "person",
    person_id: Annotated[uuid.UUID | None, Query()] = None,
    space_id: Annotated[uuid.UUID | None, Query()] = None,
    token_id: Annotated[uuid.UUID | None, Query()] = None,
) -> EveryonesUsage:
    """Return the model usage of everybody in a month, or of one person, space or token. For administrators."""
    require_administrator(request)
    return EveryonesUsage(**_usage(month, by, UsageFilter(person_id, space_id, token_id)))


@router.get("/admin/limits", auth=READ, response=responses(Limits))
def get_limits(request: ApiRequest) -> Limits:
    """List the monthly limits. For administrators."""
    require_administrator(request)
    return _limits()


@router.put("/admin/limits", auth=WRITE, response=responses(Limits))
def set_limit(request: ApiRequest, body: NewLimit) -> Limits:
    """Set or remove a monthly limit, and return all. For administrators."""
    require_administrator(request)
    soft, hard = _decimal(body.soft), _decimal(body.hard)
    changes.set_limit(body.target, body.target_id, unit=body.unit, soft=soft, hard=hard, by=current_user(request))
    return _limits()


@router.get("/admin/prices", auth=READ, response=responses(Prices))
def get_prices(request: ApiRequest) -> Prices:
    """List the prices of models. For administrators."""
    require_administrator(request)
    return _prices()


@router.put("/admin/prices", auth=WRITE, response=responses(Prices))
def set_price(request: ApiRequest, body: NewPrice) -> Prices:
    """Set the price of a model, and return all. For administrators."""
    require_administrator(request)
    changes.set_price(
        body.model,
        input_price=Decimal(str(body.input)),
        output_price=Decimal(str(body.output)),
        cached_price=_decimal(body.cached_input),
        by=current_user(request),
    )
    return _prices()


@router.delete("/admin/prices", auth=WRITE, response=responses(Prices))
def delete_price(request: ApiRequest, model: Annotated[Text, Query(max_length=120)]) -> Prices:
    """Delete the price of a model, whose usage has no cost from now on, and return the others. For administrators."""
    require_administrator(request)
    changes.delete_price(model, by=current_user(request))
    return _prices()


def _usage(month: str | None, by: str, of: UsageFilter, *, reader_id: uuid.UUID | None = None) -> dict[str, Any]:
    first = month_start() if month is None else date.fromisoformat(f"{month}-01")
    sums = usage_by(by, first, of)
    names = names_of(by, [row.key for row in sums], reader_id=reader_id)
    rows = [
        UsageRow(**_counts(row), key=None if row.key is None else str(row.key), name=names[row.key]) for row in sums
    ]
    total = UsageCounts(**_counts(total_usage(first, of)))
    return {"month": f"{first:%Y-%m}", "currency": get_currency(), "total": total, "rows": rows}


def _counts(row: UsageSum) -> dict[str, Any]:
    names = [name for name in UsageCounts.model_fields if name != "cost"]
    return {name: getattr(row, name) for name in names} | {"cost": _float(row.known_cost)}


def _status(state: LimitState) -> LimitStatus:
    limit = state.limit
    return LimitStatus(
        target=limit.target,
        unit=limit.unit,
        used=float(state.used),
        soft=_float(limit.soft),
        hard=_float(limit.hard),
        resets_at=state.resets_at,
    )


def _limits() -> Limits:
    return Limits(limits=[_limit(limit) for limit in list_limits()], resets_at=next_reset())


def _limit(limit: UsageLimit) -> Limit:
    return Limit(
        target=limit.target,
        target_id=limit.target_id,
        name=limit_name(limit),
        unit=limit.unit,
        soft=_float(limit.soft),
        hard=_float(limit.hard),
    )


def _prices() -> Prices:
    return Prices(currency=get_currency(), prices=[_price(price) for price in list_prices()])


def _price(price: ModelPrice) -> PriceOfModel:
    return PriceOfModel(
        model=price.model,
        input=float(price.input_price),
        cached_input=_float(price.cached_price),
        output=float(price.output_price),
    )


def _decimal(amount: float | None) -> Decimal | None:
    return None if amount is None else Decimal(str(amount))


def _float(amount: Decimal | None) -> float | None:
    return None if amount is None else float(amount)
