"""The pages of usage: of everybody for administrators, with limits and prices, and of oneself."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from cato_web.accounts.views import AuthenticatedRequest
from cato_web.usage import changes
from cato_web.usage.forms import CurrencyForm, LimitForm, PriceForm, target_value
from cato_web.usage.names import names_of
from cato_web.usage.rows import limit_setting_rows, month_choices, parse_month, price_rows, usage_rows, usage_total
from chat.models import ModelPrice, UsageDay, UsageLimit
from chat.rows.usage import limit_rows
from chat.usage import limits, prices
from chat.usage.reports import UsageFilter, usage_days
from memory.api import InvalidInputError, admin_required, clean_text, parse_uuid

_DIMENSION_LABELS = {
    "person": gettext_lazy("People"),
    "space": gettext_lazy("Spaces"),
    "model": gettext_lazy("Models"),
    "token": gettext_lazy("API tokens"),
    "purpose": gettext_lazy("Purposes"),
}
_COLUMNS = (
    "requests", "prompt_tokens", "cached_tokens", "completion_tokens", "estimated_tokens", "unpriced_tokens", "cost",
)  # fmt: skip


@admin_required
@require_GET
def admin_usage(request: AuthenticatedRequest) -> HttpResponse:
    """Show the usage of a month by person, space, model, token or purpose."""
    month = parse_month(request.GET.get("month", ""))
    by = request.GET.get("by", "")
    by = by if by in _DIMENSION_LABELS else "person"
    context = {
        "section": "admin",
        "tab": "usage",
        "by": by,
        "by_label": _DIMENSION_LABELS[by],
        "dimensions": [(name, label, name == by) for name, label in _DIMENSION_LABELS.items()],
        "month": f"{month:%Y-%m}",
        "months": month_choices(month),
        "rows": usage_rows(by, month),
        "total": usage_total(month),
    }
    return render(request, "people/admin_usage.html", context)


@admin_required
@require_GET
def admin_usage_csv(request: AuthenticatedRequest) -> HttpResponse:
    """Return the usage of a month by day as CSV."""
    month = parse_month(request.GET.get("month", ""))
    response = HttpResponse(_csv_lines(month), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="usage-{month:%Y-%m}.csv"'
    return response


@admin_required
@require_http_methods(["GET", "POST"])
def admin_limits(request: AuthenticatedRequest) -> HttpResponse:
    """Show the limits and prices; POST sets a limit. Links with a target or model fill the forms."""
    limit_form = LimitForm(request.POST or None, initial=_initial_limit(request))
    if request.method == "POST" and limit_form.is_valid():
        target, target_id = limit_form.chosen
        amounts = {name: limit_form.cleaned_data[name] for name in ("unit", "soft", "hard")}
        if _apply(limit_form, lambda: changes.set_limit(target, target_id, by=request.user, **amounts)):
            messages.success(request, _("Saved."))
            return redirect("admin_limits")
    return _limits_page(request, limit_form=limit_form)


@admin_required
@require_POST
def remove_limit(request: AuthenticatedRequest) -> HttpResponse:
    """Remove a limit."""
    target, _colon, id = request.POST.get("target", "").partition(":")
    try:
        changes.set_limit(target, parse_uuid(id), unit=UsageLimit.Unit.TOKENS, soft=None, hard=None, by=request.user)
    except InvalidInputError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("Removed."))
    return redirect("admin_limits")


@admin_required
@require_POST
def set_price(request: AuthenticatedRequest) -> HttpResponse:
    """Set or remove the price of a model."""
    if request.POST.get("remove") == "yes":
        changes.delete_price(clean_text(request.POST.get("model", "")), by=request.user)
        messages.success(request, _("Removed."))
        return redirect("admin_limits")
    form = PriceForm(request.POST)
    if form.is_valid() and _apply(form, lambda: changes.set_price(by=request.user, **form.cleaned_data)):
        messages.success(request, _("Saved. The price counts from now on."))
        return redirect("admin_limits")
    return _limits_page(request, price_form=form)


@admin_required
@require_POST
def set_currency(request: AuthenticatedRequest) -> HttpResponse:
    """Set the currency of all prices."""
    form = CurrencyForm(request.POST)
    if not form.is_valid():
        return _limits_page(request, currency_form=form)
    changes.set_currency(form.cleaned_data["currency"], by=request.user)
    messages.success(request, _("Saved."))
    return redirect("admin_limits")


@require_GET
def own_usage(request: AuthenticatedRequest) -> HttpResponse:
    """Show a person what they used in a month, and their limits."""
    month = parse_month(request.GET.get("month", ""))
    of = UsageFilter(person_id=request.user.pk)
    tables: list[tuple[Any, Any, Any]] = [
        (_DIMENSION_LABELS["model"], usage_rows("model", month, of), usage_total(month, of))
    ]
    for by in ("purpose", "space", "token"):
        rows = usage_rows(by, month, of, reader_id=request.user.pk)
        if len(rows) > 1:
            tables.append((_DIMENSION_LABELS[by], rows, None))
    context = {
        "section": "settings",
        "limits": limit_rows(request.user.pk),
        "month": f"{month:%Y-%m}",
        "months": month_choices(month, of),
        "tables": tables,
    }
    return render(request, "people/usage.html", context)


def _limits_page(
    request: AuthenticatedRequest,
    *,
    limit_form: LimitForm | None = None,
    price_form: PriceForm | None = None,
    currency_form: CurrencyForm | None = None,
) -> HttpResponse:
    forms_ = (
        limit_form or LimitForm(initial=_initial_limit(request)),
        price_form or PriceForm(initial=_initial_price(request)),
        currency_form or CurrencyForm(initial={"currency": prices.get_currency()}),
    )
    context = {
        "section": "admin",
        "tab": "usage",
        "limit_form": forms_[0],
        "price_form": forms_[1],
        "currency_form": forms_[2],
        "limits": limit_setting_rows(),
        "prices": price_rows(),
        "resets_at": limits.next_reset(),
    }
    status = 422 if any(form.is_bound and form.errors for form in forms_) else 200
    return render(request, "people/admin_limits.html", context, status=status)


def _initial_limit(request: AuthenticatedRequest) -> dict[str, Any]:
    """Return the fields of the limit that the URL names, to be changed."""
    wanted = request.GET.get("target", "")
    limit = next((row for row in limits.list_limits() if target_value(row) == wanted), None) if wanted else None
    return (
        {}
        if limit is None
        else {"target": wanted, "unit": limit.unit, "soft": _plain(limit.soft), "hard": _plain(limit.hard)}
    )


def _initial_price(request: AuthenticatedRequest) -> dict[str, Any]:
    """Return the fields of the price that the URL names, to be changed."""
    price = ModelPrice.objects.filter(model=clean_text(request.GET.get("model", ""))).first()
    if price is None:
        return {}
    names = ("input_price", "cached_price", "output_price")
    return {"model": price.model} | {name: _plain(getattr(price, name)) for name in names}


def _plain(amount: Decimal | None) -> Decimal | None:
    """Return the amount without zeros at the end of its decimal places."""
    if amount is None:
        return None
    return amount.quantize(Decimal(1)) if amount == amount.to_integral_value() else amount.normalize()


def _apply(form: forms.Form, change: Any) -> bool:
    """Make the change; return False, with its error in the form, if it is refused."""
    try:
        change()
    except InvalidInputError as error:
        form.add_error(None, str(error))
        return False
    return True


class _Echo:
    """A file for the csv module that returns each line."""

    def write(self, line: str) -> str:
        return line


def _csv_lines(month: date) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(["date", "person", "space", "token", "model", "purpose", *_COLUMNS, "currency"])
    currency = prices.get_currency()
    rows = list(usage_days(month))
    names = {
        "person": names_of("person", {row.person_id for row in rows}),
        "space": names_of("space", {row.space_id for row in rows}),
        "token": names_of("token", {row.api_token_id for row in rows}),
    }
    for row in rows:
        yield writer.writerow(_csv_row(row, names, currency))


def _csv_row(row: UsageDay, names: dict[str, dict[Any, str]], currency: str) -> Iterable[object]:
    texts = [names["person"][row.person_id], names["space"][row.space_id], names["token"][row.api_token_id], row.model]
    # A spreadsheet would run a name that begins like a formula.
    safe = [f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t") else text for text in texts]
    return [row.date.isoformat(), *safe, row.purpose, *(getattr(row, name) for name in _COLUMNS), currency]
