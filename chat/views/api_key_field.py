"""The API key of a model endpoint in a form: a page never contains a key, so one that was typed is asked for again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

KEY_MASK = "••••••••"


class ApiKeyInput(forms.PasswordInput):
    """An input that contains the mask of a stored key, but never a key."""

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Return the context, without a typed key."""
        context: dict[str, Any] = super().get_context(name, None, attrs)
        if value == KEY_MASK:
            context["widget"]["value"] = value
        return context


def api_key_field() -> forms.CharField:
    """Return the field of the API key of an endpoint."""
    return forms.CharField(
        label=gettext_lazy("API key"),
        required=False,
        strip=True,
        max_length=400,
        help_text=gettext_lazy("Kept encrypted. Local endpoints need none."),
        widget=ApiKeyInput(attrs={"autocomplete": "off"}),
    )


class ApiKeyForm(forms.Form):
    """A form with the field `api_key`, and with what follows from not returning a key to the page."""

    key_was_typed = forms.BooleanField(required=False)
    unchecked = forms.BooleanField(required=False)

    can_save_unchecked = False

    @property
    def has_dropped_key(self) -> bool:
        """Return whether a key was typed that the page does not contain any more."""
        return bool(self.errors) and self.data.get("api_key", "") not in ("", KEY_MASK)

    @property
    def new_key(self) -> str | None:
        """The entered API key; None if it was not changed."""
        key = self.cleaned_data["api_key"]
        return None if key == KEY_MASK else str(key)

    def clean(self) -> dict[str, Any]:
        """Ask once for a key that was typed before an error."""
        fields: dict[str, Any] = super().clean() or {}
        if fields.get("key_was_typed") and not fields.get("api_key"):
            self.add_error("api_key", _("Enter the API key again: it was not kept. Or send the form without one."))
        return fields
