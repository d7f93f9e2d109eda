"""The model picker: the models of the endpoints, as a popover of the composer or as a page of its own."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat import access, services
from chat.errors import ConflictError, InvalidMessageError
from chat.llm import endpoint
from chat.llm.choices import read_model_lists, validate_choice
from chat.llm.endpoint import ModelEndpoint
from chat.llm.model_list import MAX_NAME_LENGTH
from chat.models import Thread
from chat.realtime import frames
from chat.realtime.hub import publish
from chat.rows.model_picker import model_picker_row
from memory.api import PageRequest, Space, clean_text, list_open_spaces, parse_uuid, personal_space


@require_http_methods(["GET", "POST"])
def thread_model(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Show the models to choose from; POST sets the model of the thread."""
    thread = access.thread_to_configure(request.user.pk, thread_id)
    current = _connected_endpoint(request)
    if request.method == "GET":
        return _picker(request, thread, current, chosen=thread.model)
    try:
        name = validate_choice(request.POST.get("model", ""), space=thread.space)
    except InvalidMessageError as error:
        return _refusal(request, error)
    services.set_model(thread, name)
    frame = frames.model_changed(thread.id, current.displayed_model(name))
    publish(frame)
    return HttpResponse(frame.html) if request.htmx else redirect("thread", thread_id)


@require_http_methods(["GET", "POST"])
def new_thread_model(request: PageRequest) -> HttpResponse:
    """Show the models to choose from for a new thread; POST answers with the choice, which its first message carries."""
    current = _connected_endpoint(request)
    if request.method == "GET":
        chosen = request.GET.get("model") or request.user.default_model
        return _picker(request, None, current, chosen="" if chosen == current.model else chosen)
    name = request.POST.get("model", "").strip()
    try:
        saved = validate_choice(name, space=_chosen_space(request))
    except InvalidMessageError as error:
        return _refusal(request, error)
    if request.htmx:
        choice = {"name": current.displayed_model(saved), "value": name, "oob": True}
        return render(request, "chat/_model_choice.html", choice)
    query = request.GET.copy()
    query["model"] = name
    return redirect(reverse("new_thread", query=query))


def model_of_new_thread(request: PageRequest) -> str | None:
    """Return the model that the first message of a thread carries; None if none was chosen. Raises InvalidMessageError."""
    name = request.POST.get("model", "").strip()
    current = endpoint.of_request(request) if name else None
    return None if current is None else validate_choice(name)


def _chosen_space(request: PageRequest) -> Space | None:
    """Return the space that is chosen for a new thread; None if it is unknown."""
    id = parse_uuid(request.POST.get("space") or request.GET.get("space", ""))
    return next((space for space in list_open_spaces(request.user.pk) if space.id == id), None) if id else None


def _connected_endpoint(request: PageRequest) -> ModelEndpoint:
    current = endpoint.of_request(request)
    if current is None:
        raise ConflictError(_("No model is connected."))
    return current


def _picker(request: PageRequest, thread: Thread | None, current: ModelEndpoint, *, chosen: str) -> HttpResponse:
    query = clean_text(request.GET.get("q", "")).strip()[:MAX_NAME_LENGTH]
    among = [current, *endpoint.list_further()]
    space = thread.space if thread else _chosen_space(request) or personal_space(request.user.pk)
    context = {
        "section": "thread" if thread else "new",
        "thread": thread,
        "picker": model_picker_row(among, read_model_lists(among), chosen, query, space=space),
        # The page of a new thread keeps what is in its URL.
        "url": request.path if request.htmx else request.get_full_path(),
    }
    return render(request, "chat/_model_picker.html" if request.htmx else "chat/model_picker.html", context)


def _refusal(request: PageRequest, error: InvalidMessageError) -> HttpResponse:
    if request.htmx:
        return render(request, "chat/_composer_error.html", {"error": str(error)}, status=422)
    messages.error(request, str(error))
    return redirect(request.get_full_path())
