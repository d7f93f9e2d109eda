"""The administrator's page for the model endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django.views.decorators.http import require_http_methods, require_POST

from chat import signals
from chat.errors import KeyRefusedError, ModelError
from chat.llm import client, endpoint
from chat.llm.endpoint import KeyNeededError, ModelEndpoint
from chat.llm.endpoint_check import EndpointCheckError, check_endpoint, failure
from chat.views.api_key_field import KEY_MASK, ApiKeyForm, api_key_field
from memory.api import PageRequest, admin_required, clean_text

OLLAMA = "http://127.0.0.1:11434"
_SET_BY = {
    "command line": gettext_noop("Set by the command line; change it there."),
    "environment": gettext_noop("Set by environment variable; cannot be changed here."),
    "file": gettext_noop("Set by the file; change it there."),
}


class FirstEndpointForm(ApiKeyForm):
    """Base URL, API key and model; a masked key is not changed, and neither is what is configured elsewhere."""

    base_url = forms.URLField(
        label=gettext_lazy("Address"),
        required=False,
        assume_scheme="http",
        help_text=gettext_lazy(
            "Any OpenAI-compatible address, such as http://127.0.0.1:11434/v1. Empty means OpenAI itself."
        ),
    )
    api_key = api_key_field()
    model = forms.CharField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("Empty means the first one the endpoint lists."),
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
    )

    def __init__(self, data: Any, *, current: ModelEndpoint | None) -> None:
        row = endpoint.first_row()
        api_key = KEY_MASK if row.encrypted_key else ""
        initial = {"base_url": row.base_url, "model": row.model, "api_key": api_key}
        super().__init__(data, initial=initial)
        self.current = current
        self.locked: Mapping[str, str] = endpoint.externally_configured_fields()
        for name, origin in self.locked.items():
            field = self.fields[name]
            field.disabled = True
            field.help_text = _(_SET_BY[origin])
            self.initial[name] = KEY_MASK if name == "api_key" else getattr(current, name, "")

    def clean(self) -> dict[str, Any]:
        """Clean all texts."""
        fields = super().clean()
        return {name: clean_text(value) if isinstance(value, str) else value for name, value in fields.items()}

    def endpoint(self) -> ModelEndpoint:
        """Return the entered endpoint."""
        key = self.new_key
        base_url = (self.cleaned_data["base_url"] or endpoint.OPENAI).rstrip("/")
        # A stored key is sent only to the address for which it was stored, not to one typed into the form. A key that is
        # configured elsewhere is used with any address.
        keeps_key = self.current and (self.current.base_url == base_url or "api_key" in self.locked)
        stored = self.current.api_key if self.current and keeps_key else ""
        return ModelEndpoint(base_url, stored if key is None else key, self.cleaned_data["model"])

    @property
    def is_locked(self) -> bool:
        """Return whether no field can be changed here."""
        return self.locked.keys() == set(endpoint.FIELDS)

    @property
    def is_empty(self) -> bool:
        """Return whether neither an address nor a key is entered, so that no endpoint is used."""
        return not self.cleaned_data["base_url"] and not self.cleaned_data["api_key"]


@admin_required
@require_http_methods(["GET", "POST"])
def model_settings(request: PageRequest) -> HttpResponse:
    """Show and save the model endpoint."""
    current = endpoint.current()
    form = FirstEndpointForm(request.POST or None, current=current)
    if request.method == "POST" and form.is_valid() and _save(form):
        signals.endpoint_set.send(sender=None, by=request.user.pk)
        messages.success(request, _("Saved. It answers from the next message on."))
        return redirect("model_settings")
    names, models_error, models_note = _list_models(current)
    context = {
        "section": "settings",
        "form": form,
        "models": names,
        "models_error": "" if form.errors else models_error,
        "models_note": models_note,
        "has_further": bool(endpoint.list_further()),
        "offers": [] if current else _local_models(),
        "try_url": reverse("try_model"),
    }
    return render(request, "chat/model_settings.html", context, status=422 if form.errors else 200)


@admin_required
@require_POST
def try_model(request: PageRequest) -> HttpResponse:
    """Test the endpoint of the unsaved form with a short request."""
    current = endpoint.current()
    form = FirstEndpointForm(request.POST, current=current)
    if not form.is_valid():
        return render(
            request, "chat/_endpoint_test.html", {"ok": False, "text": _("Check the address first.")}, status=422
        )
    tested = form.endpoint()
    try:
        result = {"ok": True, "text": client.run(client.test_endpoint(tested))}
    except ModelError as error:
        result = {"ok": False, "text": str(failure(error, tested))}
    return render(request, "chat/_endpoint_test.html", result)


def _save(form: FirstEndpointForm) -> bool:
    """Save the fields that are not locked; return False, with a form error, if a key is needed or the check fails."""
    locked = form.locked
    row = endpoint.first_row()
    base_url = row.base_url if "base_url" in locked else form.cleaned_data["base_url"]
    model = row.model if "model" in locked else form.cleaned_data["model"]
    key = None if "api_key" in locked else form.new_key
    try:
        if key is None:
            endpoint.stored_key(row, base_url=base_url)
        if not form.is_empty and not form.cleaned_data["unchecked"]:
            check_endpoint(form.endpoint())
        endpoint.save(base_url=base_url, api_key=key, model=model)
    except KeyNeededError:
        form.add_error("api_key", _("The stored API key belongs to another address. Enter the key for this address."))
    except EndpointCheckError as error:
        form.add_error(error.field, str(error))
        form.can_save_unchecked = True
    return not form.errors


def _list_models(current: ModelEndpoint | None) -> tuple[list[str], str, str]:
    """Return the models of the endpoint, and an error message, or a note if it works without a list."""
    if current is None:
        return [], "", ""
    try:
        return client.run(client.list_models(current)), "", ""
    except ModelError as error:
        if current.model and error.code in ("rejected", "broken") and not isinstance(error, KeyRefusedError):
            return [], "", _("%(host)s lists no models, so the name is not checked.") % {"host": current.host}
        return [], str(failure(error, current)), ""


def _local_models() -> list[dict[str, str]]:
    """Return the models of an Ollama server on this machine."""
    import httpx

    try:
        response = httpx.get(f"{OLLAMA}/api/tags", timeout=0.4)
        names = [model["name"] for model in response.json()["models"]]
    except (httpx.HTTPError, ValueError, KeyError):
        return []
    label = _("Ollama on this machine: %(model)s")
    return [{"label": label % {"model": name}, "base_url": f"{OLLAMA}/v1", "model": name} for name in names]
