"""Forms of the settings and of the list of people."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from cato_web.accounts.forms.common import PersonForm, check_name, check_new_password, new_password_field
from cato_web.accounts.model_choices import ModelChoices
from cato_web.accounts.models import ApiToken, User
from memory.api import clean_name, clean_text


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
        mode = User.ContextMode(settings.CATO.vector_store.context_mode).label
        cast(forms.ChoiceField, self.fields["context_mode"]).choices = [
            ("", _("Server default (%(mode)s)") % {"mode": mode}),
            *User.ContextMode.choices,
        ]

    def clean_name(self) -> str:
        return check_name(self.cleaned_data["name"])

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
        type_it = _("%(trouble)s Type a model's name, or leave it empty to use the configured one.")
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


class DeleteAccountForm(PersonForm):
    """Email and password, entered again to confirm that an account is to be deleted."""

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
            raise ValidationError(_("This is not the email of your account."))
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


class PasswordForm(PersonForm):
    """The old password and a new one."""

    old = forms.CharField(
        label=gettext_lazy("Current password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    new = new_password_field(gettext_lazy("New password"))

    def clean_old(self) -> str:
        if not self.person.check_password(clean_text(self.cleaned_data["old"])):
            raise ValidationError(_("This is not your password."))
        return str(self.cleaned_data["old"])

    def clean_new(self) -> str:
        return check_new_password(self.cleaned_data["new"], self.person)
