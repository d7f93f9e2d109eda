"""Forms of limits, prices and the currency."""

from __future__ import annotations

import uuid
from decimal import Decimal
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cato_web.accounts.models import ApiToken, User
from chat.models import UsageLimit
from chat.usage.prices import MAX_PRICE
from memory.api import Space, parse_uuid

_EVERYONE = UsageLimit.Target.EVERYONE.value


def _amount(label: Any, hint: Any = "", **options: Any) -> forms.DecimalField:
    widget = forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"})
    options = {"max_digits": 16, "decimal_places": 4, "min_value": Decimal(0), **options}
    return forms.DecimalField(label=label, help_text=hint, localize=True, widget=widget, **options)


def target_value(limit: UsageLimit) -> str:
    """Return the value of the field `target` for this limit."""
    return f"{limit.target}:{limit.target_id}" if limit.target_id else _EVERYONE


class LimitForm(forms.Form):
    """A limit of everyone, a person, a group or a token."""

    target = forms.ChoiceField(label=gettext_lazy("For"))
    unit = forms.ChoiceField(label=gettext_lazy("Counted in"), choices=UsageLimit.Unit.choices)
    soft = _amount(gettext_lazy("Notice from"), gettext_lazy("Messages can still be sent."), required=False)
    hard = _amount(gettext_lazy("Limit"), gettext_lazy("No new messages. 0: no use at all."), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people = User.objects.filter(left_at=None).order_by("name", "pk").values_list("pk", "name")
        groups = Space.objects.exclude(kind=Space.Kind.PERSONAL).order_by("kind", "name")
        tokens = ApiToken.objects.valid().select_related("person").order_by("person__name", "name")
        choices: list[Any] = [(_EVERYONE, UsageLimit.Target.EVERYONE.label)]
        for target, label, rows in (
            ("person", _("People"), list(people)),
            ("space", _("Groups and projects"), [(group.pk, group.display_name) for group in groups]),
            ("token", _("API tokens"), [(token.pk, f"{token.name} ({token.person.name})") for token in tokens]),
        ):
            if rows:
                choices.append((label, [(f"{target}:{id}", name) for id, name in rows]))
        self.fields["target"].choices = choices  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        """Require one of the two amounts."""
        fields: dict[str, Any] = super().clean() or {}
        if not self.errors and fields["soft"] is None and fields["hard"] is None:
            self.add_error("hard", _("Enter a limit, or the amount from which a notice appears."))
        return fields

    @property
    def chosen(self) -> tuple[str, uuid.UUID | None]:
        """The target and its id."""
        target, _colon, id = self.cleaned_data["target"].partition(":")
        return target, parse_uuid(id)


class PriceForm(forms.Form):
    """The price of a million tokens of a model."""

    model = forms.CharField(
        label=gettext_lazy("Model"),
        max_length=120,
        help_text=gettext_lazy("As the endpoint calls it."),
    )
    input_price = _amount(gettext_lazy("Input"), max_digits=12, max_value=MAX_PRICE)
    cached_price = _amount(
        gettext_lazy("Cached input"),
        gettext_lazy("Empty: the same as input."),
        max_digits=12,
        max_value=MAX_PRICE,
        required=False,
    )
    output_price = _amount(gettext_lazy("Output"), max_digits=12, max_value=MAX_PRICE)


class CurrencyForm(forms.Form):
    """The currency of all prices."""

    currency = forms.CharField(label=gettext_lazy("Currency"), max_length=12, required=False)
