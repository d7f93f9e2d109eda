"""Forms to get into Cato: set-up, registration, sign-in, and a new password after a forgotten one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cato_web.accounts import directory
from cato_web.accounts.forms.common import PersonForm, check_name, check_new_password, new_password_field
from cato_web.accounts.identities import SignInRejectedError
from cato_web.accounts.models import User
from chat.llm import endpoint
from chat.llm.endpoint import ModelEndpoint
from chat.llm.endpoint_check import EndpointCheckError, check_endpoint
from chat.views.api_key_field import ApiKeyForm
from memory.api import clean_text


class RegistrationForm(forms.Form):
    """Name, email and password of a new account."""

    name = forms.CharField(
        label=gettext_lazy("Your name"),
        max_length=80,
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    email = forms.EmailField(label=gettext_lazy("Email"), widget=forms.EmailInput(attrs={"autocomplete": "email"}))
    password = new_password_field(gettext_lazy("Password"))

    def clean_name(self) -> str:
        return check_name(self.cleaned_data["name"])

    def clean_email(self) -> str:
        email = clean_text(self.cleaned_data["email"]).lower()
        if User.objects.filter(email__iexact=email).exists():
            raise ValidationError(_("There is already an account with this email. Sign in instead."))
        return email

    def clean_password(self) -> str:
        password = self.cleaned_data["password"]
        person = User(name=self.cleaned_data.get("name", ""), email=self.cleaned_data.get("email", ""))
        return check_new_password(password, person)


class SetupForm(ApiKeyForm, RegistrationForm):
    """The first account, and optionally the model endpoint."""

    model_from = forms.ChoiceField(
        label=gettext_lazy("Chat model"),
        required=False,
        initial="later",
        choices=[("endpoint", gettext_lazy("Custom endpoint")), ("later", gettext_lazy("Skip for now"))],
        widget=forms.RadioSelect,
    )
    base_url = forms.URLField(
        label=gettext_lazy("Address"),
        required=False,
        assume_scheme="http",
        help_text=gettext_lazy("Any OpenAI-compatible address"),
    )
    model = forms.CharField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("Empty means the first one the endpoint lists."),
    )
    api_key = forms.CharField(
        label=gettext_lazy("API key"),
        required=False,
        max_length=400,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
    )

    def clean(self) -> dict[str, Any]:
        """Check the model endpoint, unless it is skipped, once everything else is right."""
        fields = super().clean()
        if fields.get("model_from") != "endpoint":
            self.errors.pop("api_key", None)
        if self.errors or fields.get("model_from") != "endpoint":
            return fields
        if not fields["base_url"] and not fields["api_key"]:
            self.add_error("base_url", _("Enter the address of the endpoint, or choose “Skip for now”."))
        elif not fields["unchecked"]:
            base_url = (fields["base_url"] or endpoint.OPENAI).rstrip("/")
            try:
                check_endpoint(ModelEndpoint(base_url, fields["api_key"], fields["model"]))
            except EndpointCheckError as error:
                self.can_save_unchecked = True
                self.add_error(error.field, str(error))
                advice = _(
                    "No account was created yet, because the model cannot be used. Correct what is marked, "
                    "or choose “Skip for now”. Enter the password and the API key again: they are not kept."
                )
                self.add_error(None, advice)
        return fields


class SignInForm(forms.Form):
    """Email and password; the error message does not reveal which of them is wrong."""

    email = forms.EmailField(label=gettext_lazy("Email"), widget=forms.EmailInput(attrs={"autocomplete": "username"}))
    password = forms.CharField(
        label=gettext_lazy("Password"),
        strip=False,
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if directory.is_configured():
            self.fields["email"] = forms.CharField(
                label=_("Email or user name"),
                max_length=254,
                widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
            )

    def clean_email(self) -> str:
        return clean_text(self.cleaned_data["email"]).lower()

    def authenticate(self) -> User | None:
        """Return the user with this email and password, or add an error and return None. Requires valid fields."""
        login, password = self.cleaned_data["email"], clean_text(self.cleaned_data["password"])
        person = authenticate(username=login, password=password)
        try:
            person = person or directory.authenticate(login, password)
        except (SignInRejectedError, directory.DirectoryUnavailableError) as error:
            self.add_error(None, str(error))
            return None
        if person is None:
            is_name = directory.is_configured()
            self.add_error(None, _("Wrong user name or password.") if is_name else _("Wrong email or password."))
        return person


class PasswordResetForm(PersonForm):
    """A new password, without the old one."""

    password = new_password_field(gettext_lazy("Your new password"))

    def clean_password(self) -> str:
        return check_new_password(self.cleaned_data["password"], self.person)
