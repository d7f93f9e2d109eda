"""Shared parts of the forms of accounts: the fields for a name and a new password."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cato_web.accounts.models import User
from memory.api import clean_name, clean_text


class PersonForm(forms.Form):
    """A form about one account."""

    def __init__(self, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person


def new_password_field(label: Any) -> forms.CharField:
    """Return a field for a new password."""
    return forms.CharField(
        label=label,
        max_length=200,
        strip=False,
        help_text=gettext_lazy("At least 10 characters. Four plain words are fine."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


def check_name(name: str) -> str:
    """Return the cleaned name, or raise ValidationError."""
    name = clean_name(name)
    if not name:
        raise ValidationError(_("Type the name the others know you by."))
    return name


def check_new_password(password: str, person: User) -> str:
    """Return the cleaned password, or raise ValidationError."""
    password = clean_text(password)
    if len(password) < 10:
        raise ValidationError(_("Use at least 10 characters. Four plain words are fine."))
    validate_password(password, person)
    return password
