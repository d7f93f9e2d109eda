"""The administrator's page for the model endpoint."""

from __future__ import annotations

from collections.abc import Mapping

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop
from django.views.decorators.http import require_http_methods, require_POST

from chat import signals
from chat.errors import ModelError
from chat.llm import client, endpoint
from chat.llm.endpoint import ModelEndpoint
from memory.api import PageRequest, admin_required, clean_text

OLLAMA = "http://127.0.0.1:11434"
_MASK = "••••••••"
_SET_BY = {
    "command line": gettext_noop("Set by the command line; change it there."),
    "environment": gettext_noop("Set by environment variable; cannot be changed here."),
    "file": gettext_noop("Set by the file; change it there."),
}


class EndpointForm(forms.Form):
    """Base URL, API key and model; a masked key is not changed."""

    base_url = forms.URLField(
        label=gettext_lazy("Address"),
        required=False,
        assume_scheme="http",
        help_text=gettext_lazy(
            "Any OpenAI-compatible address, such as http://127.0.0.1:11434/v1. Empty means OpenAI itself."
        ),
    )
    api_key = forms.CharField(
        label=gettext_lazy("API key"),
        required=False,
        strip=True,
        max_length=400,
        help_text=gettext_lazy("Kept encrypted. Local endpoints need none."),
        widget=forms.PasswordInput(render_value=True, attrs={"autocomplete": "off"}),
    )
    model = forms.CharField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("Empty means the first one the endpoint lists."),
        widget=forms.TextInput(attrs={"list": "models", "autocomplete": "off"}),
    )

    def clean(self) -> dict[str, str]:
        """Clean all texts."""
        return {name: clean_text(value or "") for name, value in (super().clean() or {}).items()}

    def new_key(self) -> str | None:
        """Return the entered API key; None if it was not changed."""
        key = self.cleaned_data["api_key"]
        return None if key == _MASK else str(key)


@admin_required
@require_http_methods(["GET", "POST"])
def model_settings(request: PageRequest) -> HttpResponse:
    """Show and save the model endpoint."""
    base_url, model, has_key = endpoint.stored_fields()
    initial = {"base_url": base_url, "model": model, "api_key": _MASK if has_key else ""}
    form = EndpointForm(request.POST or None, initial=initial)
    locked = endpoint.externally_configured_fields()
    current = endpoint.current()
    for name, origin in locked.items():
        field = form.fields[name]
        field.disabled = True
        field.help_text = _(_SET_BY[origin])
        form.initial[name] = _MASK if name == "api_key" else getattr(current, name, "")
    if request.method == "POST" and form.is_valid() and _save(form, locked):
        signals.endpoint_set.send(sender=None, by=request.user.pk)
        messages.success(request, _("Saved. It answers from the next message on."))
        return redirect("model_settings")
    names, models_error = _list_models(current)
    context = {
        "section": "settings",
        "form": form,
        "locked": locked,
        "models": names,
        "models_error": models_error,
        "offers": [] if current else _local_models(),
        "try_url": reverse("try_model"),
    }
    return render(request, "chat/model_settings.html", context, status=422 if form.errors else 200)


@admin_required
@require_POST
def try_model(request: PageRequest) -> HttpResponse:
    """Test the endpoint of the unsaved form with a short request."""
    form = EndpointForm(request.POST)
    if not form.is_valid():
        return render(
            request, "chat/_endpoint_test.html", {"ok": False, "text": _("Check the address first.")}, status=422
        )
    current = endpoint.current()
    key = form.new_key()
    base_url = (form.cleaned_data["base_url"] or endpoint.OPENAI).rstrip("/")
    # A stored key is sent only to the address for which it was stored, not to one typed into the form.
    stored = current.api_key if current and current.base_url == base_url else ""
    tested = ModelEndpoint(
        base_url=base_url,
        api_key=stored if key is None else key,
        model=form.cleaned_data["model"],
    )
    try:
        result = {"ok": True, "text": client.run(client.test_endpoint(tested))}
    except ModelError as error:
        result = {"ok": False, "text": str(error)}
    return render(request, "chat/_endpoint_test.html", result)


def _save(form: EndpointForm, locked: Mapping[str, str]) -> bool:
    """Save the fields that are not locked; return False, with a form error, if the API key is needed again."""
    base_url, model, _has_key = endpoint.stored_fields()
    try:
        endpoint.save(
            base_url=form.cleaned_data["base_url"] if "base_url" not in locked else base_url,
            api_key=form.new_key() if "api_key" not in locked else None,
            model=form.cleaned_data["model"] if "model" not in locked else model,
        )
    except endpoint.KeyNeededError:
        form.add_error("api_key", _("The stored API key belongs to another address. Enter the key for this address."))
        return False
    return True


def _list_models(current: ModelEndpoint | None) -> tuple[list[str], str]:
    """Return the models of the endpoint, or an error message."""
    if current is None:
        return [], ""
    try:
        return client.run(client.list_models(current)), ""
    except ModelError as error:
        return [], str(error)


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
