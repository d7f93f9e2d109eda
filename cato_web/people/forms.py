"""The forms by which people set up, join, sign in and choose."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib.auth import authenticate
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from cato_web.people.models import User
from cato_web.people.offers import Offer
from memory.text import clean_text


class JoinForm(forms.Form):
    """Name, e-mail and password of a new account."""

    name = forms.CharField(
        label="Your name", max_length=80, strip=False, widget=forms.TextInput(attrs={"autocomplete": "name"})
    )
    email = forms.EmailField(label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "email"}))
    password = forms.CharField(
        label="Password",
        max_length=200,
        strip=False,
        help_text="At least 10 characters. Four plain words are fine.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def clean_name(self) -> str:
        name = clean_text(self.cleaned_data["name"]).strip()
        if not name:
            raise ValidationError("Type the name the others know you by.")
        return name

    def clean_email(self) -> str:
        email = clean_text(self.cleaned_data["email"]).lower()
        if User.objects.filter(email__iexact=email).exists():
            raise ValidationError("There is an account with this e-mail already. Sign in instead.")
        return email

    def clean_password(self) -> str:
        password = self.cleaned_data["password"]
        person = User(name=self.cleaned_data.get("name", ""), email=self.cleaned_data.get("email", ""))
        return checked_password(password, person)


class SetUpForm(JoinForm):
    """The first account, and optionally the endpoint that answers."""

    model_from = forms.ChoiceField(
        label="Model that answers",
        required=False,
        initial="later",
        choices=[("endpoint", "An endpoint of your own"), ("later", "Later")],
        widget=forms.RadioSelect,
    )
    base_url = forms.URLField(
        label="Address", required=False, assume_scheme="http", help_text="Any OpenAI-compatible address"
    )
    model = forms.CharField(label="Model", required=False, max_length=120)
    api_key = forms.CharField(
        label="API key", required=False, max_length=400, widget=forms.PasswordInput(attrs={"autocomplete": "off"})
    )


class SignInForm(forms.Form):
    """E-mail and password; what is wrong is not told apart."""

    email = forms.EmailField(label="E-mail", widget=forms.EmailInput(attrs={"autocomplete": "username"}))
    password = forms.CharField(
        label="Password",
        strip=False,
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if not self.errors:
            self.person = authenticate(username=clean_text(cleaned["email"]), password=clean_text(cleaned["password"]))
            if self.person is None:
                raise ValidationError("This e-mail and password do not belong together, or the account is closed.")
        return cleaned


class ChoicesForm(forms.ModelForm):  # type: ignore[type-arg]  # Django's class takes no argument at run time
    """What a person may choose for themselves."""

    class Meta:
        model = User
        fields = ("name", "theme", "density", "context_mode", "default_model")
        labels = {
            "name": "Your name",
            "theme": "Theme",
            "density": "Density",
            "context_mode": "What was recalled is shown as",
            "default_model": "Model of new threads",
        }

    def __init__(self, *args: Any, offer: Offer, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.offer = offer
        self._offer_models(self.instance.default_model)
        mode = settings.CATO.vector_store.context_mode
        cast(forms.ChoiceField, self.fields["context_mode"]).choices = [
            ("", f"As set for everyone ({mode})"),
            *User.ContextMode.choices,
        ]

    def clean_name(self) -> str:
        return clean_text(self.cleaned_data["name"]).strip() or self.instance.name

    def clean_default_model(self) -> str:
        model = clean_text(self.cleaned_data["default_model"]).strip()
        is_chosen_now = model != self.initial.get("default_model", "")
        if model and is_chosen_now and self.offer.names and model not in self.offer.names:
            raise ValidationError(f"{self.offer.host} does not offer {model}. Choose one of its models.")
        return model

    def _offer_models(self, chosen: str) -> None:
        field, offer = self.fields["default_model"], self.offer
        configured = f"As configured ({offer.configured})" if offer.configured else "As configured"
        field.help_text = offer.trouble and f"{offer.trouble} Type a model's name, or leave it empty: as configured."
        if not offer.names:
            return
        names = [(name, name) for name in offer.names]
        if chosen and chosen not in offer.names:
            names.append((chosen, f"{chosen} (not offered)"))
            field.help_text = (
                f"{offer.host} does not offer {chosen} any more: what you say in a new thread is kept, but not answered "
                "until another model is chosen."
            )
        field.widget = forms.Select(choices=[("", configured), *names])


class LeaveForm(forms.Form):
    """What only the person of the account knows, typed once more before it is deleted."""

    email = forms.CharField(
        label="Your e-mail, typed out", max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )
    password = forms.CharField(
        label="Your password",
        strip=False,
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )

    def __init__(self, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person

    def clean_email(self) -> str:
        email = clean_text(self.cleaned_data["email"]).strip().lower()
        if email != self.person.email.lower():
            raise ValidationError("This is not the e-mail of your account.")
        return email

    def clean_password(self) -> str:
        if not self.person.check_password(clean_text(self.cleaned_data["password"])):
            raise ValidationError("This is not your password.")
        return str(self.cleaned_data["password"])


class InvitationForm(forms.Form):
    """What the invited person will be."""

    role = forms.ChoiceField(label="They join as", choices=User.Role.choices, initial=User.Role.MEMBER)


class PasswordForm(forms.Form):
    """The old password and a new one."""

    old = forms.CharField(
        label="Your password now",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    new = forms.CharField(
        label="The new one",
        strip=False,
        max_length=200,
        help_text="At least 10 characters. Four plain words are fine.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person

    def clean_old(self) -> str:
        if not self.person.check_password(self.cleaned_data["old"]):
            raise ValidationError("This is not your password.")
        return str(self.cleaned_data["old"])

    def clean_new(self) -> str:
        return checked_password(self.cleaned_data["new"], self.person)


class ResetForm(forms.Form):
    """A new password for who forgot theirs."""

    password = forms.CharField(
        label="Your new password",
        max_length=200,
        strip=False,
        help_text="At least 10 characters. Four plain words are fine.",
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.person = person

    def clean_password(self) -> str:
        return checked_password(self.cleaned_data["password"], self.person)


def checked_password(password: str, person: User) -> str:
    """The password, if it may be one. Raises ValidationError with a sentence of ours."""
    password = clean_text(password)
    if len(password) < 10:
        raise ValidationError("Use at least 10 characters. Four plain words are fine.")
    validate_password(password, person)
    return password
