"""The administrator's page for the model that answers."""

from __future__ import annotations

import asyncio
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
    """Base URL, key and model; a key left masked is left as it is."""

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
        return {name: clean_text(value or "") for name, value in (super().clean() or {}).items()}

    def new_key(self) -> str | None:
        key = self.cleaned_data["api_key"]
        return None if key == _MASK else str(key)


@admin_required
@require_http_methods(["GET", "POST"])
def model_settings(request: PageRequest) -> HttpResponse:
    """Show the endpoint in force, and keep another."""
    base_url, model, has_key = endpoint.saved()
    initial = {"base_url": base_url, "model": model, "api_key": _MASK if has_key else ""}
    form = EndpointForm(request.POST or None, initial=initial)
    locked = endpoint.externally_configured_fields()
    in_force = endpoint.current()
    for name, origin in locked.items():
        field = form.fields[name]
        field.disabled = True
        field.help_text = _(_SET_BY[origin])
        form.initial[name] = _MASK if name == "api_key" else getattr(in_force, name, "")
    if request.method == "POST" and form.is_valid() and _save(form, locked):
        signals.endpoint_set.send(sender=None, by=request.user.pk)
        messages.success(request, _("Saved. It answers from the next message on."))
        return redirect("model_settings")
    names, trouble = _listed(in_force)
    context = {
        "section": "settings",
        "form": form,
        "locked": locked,
        "models": names,
        "trouble": trouble,
        "offers": [] if in_force else _offers(),
        "try_url": reverse("try_model"),
    }
    return render(request, "chat/model_settings.html", context, status=422 if form.errors else 200)


@admin_required
@require_POST
def try_model(request: PageRequest) -> HttpResponse:
    """Ask the endpoint as it stands in the form for one short answer."""
    form = EndpointForm(request.POST)
    if not form.is_valid():
        return render(
            request, "chat/_endpoint_test.html", {"ok": False, "text": _("Check the address first.")}, status=422
        )
    in_force = endpoint.current()
    key = form.new_key()
    base_url = (form.cleaned_data["base_url"] or endpoint.OPENAI).rstrip("/")
    # A stored key goes to the address it was stored for, and to no other that somebody types in.
    stored = in_force.api_key if in_force and in_force.base_url == base_url else ""
    tried = ModelEndpoint(
        base_url=base_url,
        api_key=stored if key is None else key,
        model=form.cleaned_data["model"],
    )
    try:
        result = {"ok": True, "text": asyncio.run(client.test_endpoint(tried))}
    except ModelError as error:
        result = {"ok": False, "text": str(error)}
    return render(request, "chat/_endpoint_test.html", result)


def _save(form: EndpointForm, locked: Mapping[str, str]) -> bool:
    """Save what is not set elsewhere; False, with an error at the key, where the key has to be entered again."""
    base_url, model, _has_key = endpoint.saved()
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


def _listed(answering: ModelEndpoint | None) -> tuple[list[str], str]:
    if answering is None:
        return [], ""
    try:
        return asyncio.run(client.list_models(answering)), ""
    except ModelError as error:
        return [], str(error)


def _offers() -> list[dict[str, str]]:
    """An Ollama that answers on this machine."""
    import httpx

    try:
        answer = httpx.get(f"{OLLAMA}/api/tags", timeout=0.4)
        names = [model["name"] for model in answer.json()["models"]]
    except (httpx.HTTPError, ValueError, KeyError):
        return []
    label = _("Ollama on this machine: %(model)s")
    return [{"label": label % {"model": name}, "base_url": f"{OLLAMA}/v1", "model": name} for name in names]
