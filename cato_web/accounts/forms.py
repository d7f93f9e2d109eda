"""Forms for set-up, registration, sign-in and settings."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cato_web.accounts import directory
from cato_web.accounts.identities import SignInRejectedError
from cato_web.accounts.model_choices import ModelChoices
from cato_web.accounts.models import ApiToken, User
from chat.llm import endpoint
from chat.llm.endpoint import ModelEndpoint
from chat.llm.endpoint_check import EndpointCheckError, check_endpoint
from chat.views.api_key_field import ApiKeyForm
from memory.api import clean_name, clean_text


def _new_password_field(label: Any) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=200,
        strip=False,
        help_text=gettext_lazy("At least 10 characters. Four plain words are fine."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )


def _check_name(name: str) -> str:
    """Return the cleaned name, or raise ValidationError."""
    name = clean_name(name)
    if not name:
        raise ValidationError(_("Type the name the others know you by."))
    return name


class _PersonForm(forms.Form):
    """A form about one account."""

    def __init__(self, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person


class RegistrationForm(forms.Form):
    """Name, e-mail and password of a new account."""

    name = forms.CharField(
        label=gettext_lazy("Your name"),
        max_length=80,
        strip=False,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    email = forms.EmailField(label=gettext_lazy("E-mail"), widget=forms.EmailInput(attrs={"autocomplete": "email"}))
    password = _new_password_field(gettext_lazy("Password"))

    def clean_name(self) -> str:
        return _check_name(self.cleaned_data["name"])

    def clean_email(self) -> str:
        email = clean_text(self.cleaned_data["email"]).lower()
        if User.objects.filter(email__iexact=email).exists():
            raise ValidationError(_("There is an account with this e-mail already. Sign in instead."))
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
    """E-mail and password; the error message does not reveal which of them is wrong."""

    email = forms.EmailField(label=gettext_lazy("E-mail"), widget=forms.EmailInput(attrs={"autocomplete": "username"}))
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
                label=_("E-mail or user name"),
                max_length=254,
                widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
            )

    def clean_email(self) -> str:
        return clean_text(self.cleaned_data["email"]).lower()

    def authenticate(self) -> User | None:
        """Return the user with this e-mail and password, or add an error and return None. Requires valid fields."""
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


class PreferencesForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's class takes no argument at run time
    """The preferences of a user."""

    class Meta:
        model = User
        fields = ("name", "theme", "density", "context_mode", "default_model")
        labels = {
            "name": gettext_lazy("Your name"),
            "theme": gettext_lazy("Theme"),
            "density": gettext_lazy("Density"),
            "context_mode": gettext_lazy("Recalled passages"),
            "default_model": gettext_lazy("Model of new threads"),
        }

    def __init__(self, *args: Any, choices: ModelChoices, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choices = choices
        self._set_model_choices(self.instance.default_model)
        mode = settings.CATO.vector_store.context_mode
        cast(forms.ChoiceField, self.fields["context_mode"]).choices = [
            ("", _("Server default (%(mode)s)") % {"mode": mode}),
            *User.ContextMode.choices,
        ]

    def clean_name(self) -> str:
        return _check_name(self.cleaned_data["name"])

    def clean_default_model(self) -> str:
        model = clean_text(self.cleaned_data["default_model"]).strip()
        is_chosen_now = model != self.initial.get("default_model", "")
        if model and is_chosen_now and self.choices.names and model not in self.choices.names:
            facts = {"host": self.choices.host, "model": model}
            raise ValidationError(_("%(host)s does not offer %(model)s. Choose one of its models.") % facts)
        return model

    def _set_model_choices(self, chosen: str) -> None:
        field, choices = self.fields["default_model"], self.choices
        configured = _("Default")
        if choices.configured:
            configured = _("Default (%(model)s)") % {"model": choices.configured}
        type_it = _("%(trouble)s Type a model's name, or leave it empty: as configured.")
        field.help_text = choices.error and type_it % {"trouble": choices.error}
        if not choices.names:
            return
        names = [(name, name) for name in choices.names]
        if chosen and chosen not in choices.names:
            names.append((chosen, _("%(model)s (not offered)") % {"model": chosen}))
            field.help_text = _(
                "%(host)s no longer offers %(model)s. New threads will not be answered until you choose another model."
            ) % {"host": choices.host, "model": chosen}
        field.widget = forms.Select(choices=[("", configured), *names])


class DeleteAccountForm(_PersonForm):
    """E-mail and password, entered again to confirm that an account is to be deleted."""

    email = forms.CharField(
        label=gettext_lazy("Confirm your email"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    password = forms.CharField(
        label=gettext_lazy("Your password"),
        strip=False,
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(person, *args, **kwargs)
        if not person.has_usable_password():
            del self.fields["password"]

    def clean_email(self) -> str:
        email = clean_text(self.cleaned_data["email"]).strip().lower()
        if email != self.person.email.lower():
            raise ValidationError(_("This is not the e-mail of your account."))
        return email

    def clean_password(self) -> str:
        if not self.person.check_password(clean_text(self.cleaned_data["password"])):
            raise ValidationError(_("This is not your password."))
        return str(self.cleaned_data["password"])


class InvitationForm(forms.Form):
    """The role of an invited user."""

    role = forms.ChoiceField(label=gettext_lazy("They join as"), choices=User.Role.choices, initial=User.Role.MEMBER)


class TokenForm(forms.Form):
    """Name, scopes and lifetime of a new API token."""

    NEVER = "never"

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=80,
        strip=False,
        help_text=gettext_lazy("What it is for, such as “backup script”"),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Permissions"),
        choices=ApiToken.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Select at least one permission.")},
    )
    lifetime = forms.ChoiceField(
        label=gettext_lazy("Expires"),
        initial="90",
        choices=[
            ("30", gettext_lazy("in 30 days")),
            ("90", gettext_lazy("in 90 days")),
            ("365", gettext_lazy("in 365 days")),
            (NEVER, gettext_lazy("never")),
        ],
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # The page has another form with a field "name".
        super().__init__(*args, **{"auto_id": "token_%s", **kwargs})

    def clean_name(self) -> str:
        name = clean_name(self.cleaned_data["name"])
        if not name:
            raise ValidationError(_("Give it a name, so that you know later what it was for."))
        return name

    def clean_lifetime(self) -> int | None:
        """Return the number of days, or None for a token that never expires."""
        chosen = self.cleaned_data["lifetime"]
        return None if chosen == self.NEVER else int(chosen)


class PasswordForm(_PersonForm):
    """The old password and a new one."""

    old = forms.CharField(
        label=gettext_lazy("Current password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    new = _new_password_field(gettext_lazy("New password"))

    def clean_old(self) -> str:
        if not self.person.check_password(clean_text(self.cleaned_data["old"])):
            raise ValidationError(_("This is not your password."))
        return str(self.cleaned_data["old"])

    def clean_new(self) -> str:
        return check_new_password(self.cleaned_data["new"], self.person)


class PasswordResetForm(_PersonForm):
    """A new password, without the old one."""

    password = _new_password_field(gettext_lazy("Your new password"))

    def clean_password(self) -> str:
        return check_new_password(self.cleaned_data["password"], self.person)


def check_new_password(password: str, person: User) -> str:
    """Return the cleaned password, or raise ValidationError."""
    password = clean_text(password)
    if len(password) < 10:
        raise ValidationError(_("Use at least 10 characters. Four plain words are fine."))
    validate_password(password, person)
    return password
