"""The administrators' pages of all model endpoints: which there are, and which spaces' text each may receive."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from chat import signals
from chat.errors import InvalidMessageError
from chat.llm.endpoint import KeyNeededError, ModelEndpoint, list_endpoints, stored_key
from chat.llm.endpoint_check import EndpointCheckError, check_endpoint
from chat.llm.further_endpoints import (
    MAX_NAME,
    EndpointFields,
    add_endpoint,
    change_endpoint,
    remove_endpoint,
    set_policy,
    validate_name,
)
from chat.models import Endpoint
from chat.rows.endpoints import embedding_row, endpoint_rows
from chat.views.api_key_field import KEY_MASK, ApiKeyForm, api_key_field
from chat.views.data_policy_fields import DataPolicyForm
from memory import api as memory
from memory.api import DataPolicy, InvalidInputError, PageRequest, admin_required, clean_text

_FIRST, _NO_FALLBACK = "first", ""  # values of the field `fallback`


class EndpointForm(DataPolicyForm, ApiKeyForm):
    """An endpoint and its data policy. The address, key and model of the first endpoint are set elsewhere."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=MAX_NAME,
        help_text=gettext_lazy(
            "Letters a to z, digits, dots and hyphens. Its models are called name/model. It cannot be changed later."
        ),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    base_url = forms.URLField(
        label=gettext_lazy("Address"),
        max_length=300,
        assume_scheme="http",
        help_text=gettext_lazy("Any OpenAI-compatible address, such as http://127.0.0.1:11434/v1."),
    )
    api_key = api_key_field()
    model = forms.CharField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=120 - MAX_NAME - 1,
        help_text=gettext_lazy("Empty means the first one the endpoint lists."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    location = forms.CharField(
        label=gettext_lazy("Where it runs"),
        required=False,
        max_length=60,
        help_text=gettext_lazy("Shown to people, such as “this network” or “United States”."),
    )
    fallback = forms.ChoiceField(
        label=gettext_lazy("If it does not answer, use"),
        required=False,
        help_text=gettext_lazy("Only if that endpoint may receive everything in the prompt. The answer says so."),
    )

    def __init__(self, data: Any, row: Endpoint, others: list[ModelEndpoint]) -> None:
        initial = {
            "base_url": row.base_url,
            "api_key": KEY_MASK if row.encrypted_key else "",
            "model": row.model,
            "location": row.location,
            "policy": row.policy,
            "allowed_in": row.allowed_in,
            "fallback": _NO_FALLBACK if row.fallback is None else row.fallback or _FIRST,
        }
        super().__init__(data, initial=initial)
        is_new, is_first = row.pk is None and row.name == "new", not row.name
        self.row = row
        if not is_new:
            del self.fields["name"]
        if is_first:
            for name in ("base_url", "api_key", "model"):
                del self.fields[name]
        names = [(one.name or _FIRST, one.label) for one in others if one.name != row.name or is_new]
        cast(forms.ChoiceField, self.fields["fallback"]).choices = [(_NO_FALLBACK, _("No other endpoint")), *names]

    def clean(self) -> dict[str, Any]:
        """Clean all texts, and check the name of a new endpoint."""
        fields = super().clean()
        if fields.get("name"):
            try:
                fields["name"] = validate_name(fields["name"])
            except InvalidMessageError as error:
                self.add_error("name", str(error))
        return {name: clean_text(value) if isinstance(value, str) else value for name, value in fields.items()}

    @property
    def fallback_name(self) -> str | None:
        """The name of the chosen fallback, "" for the first endpoint; None: no other."""
        chosen = self.cleaned_data["fallback"]
        return None if chosen == _NO_FALLBACK else "" if chosen == _FIRST else str(chosen)

    def entered_fields(self) -> EndpointFields:
        """Return what was entered for a further endpoint."""
        fields = self.cleaned_data
        return EndpointFields(
            base_url=fields["base_url"],
            api_key=self.new_key,
            model=fields["model"],
            location=fields["location"],
            policy=fields["policy"],
            allowed_in=fields["allowed_in"],
            fallback=self.fallback_name,
        )


@admin_required
@require_http_methods(["GET", "POST"])
def model_endpoints(request: PageRequest) -> HttpResponse:
    """List the endpoints; POST adds a further one."""
    among = list_endpoints()
    form = EndpointForm(request.POST or None, Endpoint(name="new"), among)
    if request.method == "POST" and form.is_valid() and _save(form):
        name = form.cleaned_data["name"]
        signals.endpoint_set.send(sender=None, by=request.user.pk, name=name)
        is_used = form.cleaned_data["policy"] != DataPolicy.NONE
        messages.success(request, _("Added. Its models can be chosen in the composer.") if is_used else _("Added."))
        return redirect("model_endpoints")
    context = {"tab": "endpoints", "form": form, "endpoints": endpoint_rows(among), "embeddings": embedding_row()}
    return render(request, "chat/endpoints.html", context, status=422 if form.errors else 200)


@admin_required
@require_http_methods(["GET", "POST"])
def change_model_endpoint(request: PageRequest, name: str = "") -> HttpResponse:
    """Show an endpoint, the first one without a name; POST changes or removes it."""
    among = list_endpoints()
    if name not in {one.name for one in among}:
        raise Http404
    row = Endpoint.objects.filter(name=name).first() or Endpoint()
    if request.method == "POST" and name and request.POST.get("action") == "remove":
        remove_endpoint(row)
        signals.endpoint_set.send(sender=None, by=request.user.pk, name=name)
        messages.success(request, _("Removed. Nothing is sent to it any more."))
        return redirect("model_endpoints")
    form = EndpointForm(request.POST or None, row, among)
    if request.method == "POST" and form.is_valid() and _save(form):
        signals.endpoint_set.send(sender=None, by=request.user.pk, name=name)
        messages.success(request, _("Saved. It counts from the next request on."))
        return redirect("model_endpoints")
    (shown,) = endpoint_rows([one for one in among if one.name == name])
    context = {"tab": "endpoints", "form": form, "endpoint": shown}
    return render(request, "chat/change_endpoint.html", context, status=422 if form.errors else 200)


@admin_required
@require_http_methods(["GET", "POST"])
def embedding_policy(request: PageRequest) -> HttpResponse:
    """Show which spaces' text a remote embedding provider may receive; POST changes it."""
    row = embedding_row()
    if row is None:
        raise Http404
    policy = memory.embedding_policy_of(settings.CATO.vector_store.embedding_provider)
    form = DataPolicyForm(request.POST or None, initial={"policy": policy.kind, "allowed_in": list(policy.places)})
    if request.method == "POST" and form.is_valid():
        try:
            memory.set_embedding_policy(form.cleaned_data["policy"], form.cleaned_data["allowed_in"])
        except InvalidInputError as error:
            form.add_error(None, str(error))
        else:
            signals.embedding_policy_set.send(sender=None, by=request.user.pk)
            messages.success(request, _("Saved. It counts from the next text on."))
            return redirect("model_endpoints")
    context = {"tab": "endpoints", "form": form, "embeddings": row}
    return render(request, "chat/embedding_policy.html", context, status=422 if form.errors else 200)


def _save(form: EndpointForm) -> bool:
    """Save what was entered; return False, with a form error, if it cannot be used."""
    row, fields = form.row, form.cleaned_data
    try:
        if not row.name:
            set_policy(
                row,
                location=fields["location"],
                policy=fields["policy"],
                allowed_in=fields["allowed_in"],
                fallback=form.fallback_name,
            )
            return True
        entered = form.entered_fields()
        if not fields["unchecked"]:
            _check(row, entered)
        if row.pk is None:
            add_endpoint(fields["name"], entered)
        else:
            change_endpoint(row, entered)
    except KeyNeededError:
        form.add_error("api_key", _("The stored API key belongs to another address. Enter the key for this address."))
    except EndpointCheckError as error:
        form.add_error(error.field, str(error))
        form.can_save_unchecked = True
    except InvalidInputError as error:
        form.add_error(None, str(error))
    return not form.errors


def _check(row: Endpoint, entered: EndpointFields) -> None:
    """Request a short answer. Raises EndpointCheckError, and KeyNeededError before a key is sent to another address."""
    key = entered.api_key
    if key is None:
        key = stored_key(row, base_url=entered.base_url)
    check_endpoint(ModelEndpoint(entered.base_url.rstrip("/"), key, entered.model))
