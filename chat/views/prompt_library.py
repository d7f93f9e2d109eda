"""The page of saved prompts, and the list and texts of them for the composer."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods

from chat import access, prompt_library
from chat.errors import ConflictError, InvalidMessageError, InvalidNameError
from chat.models import SavedPrompt
from chat.rows.saved_prompts import offered_rows, sections
from memory import api as memory
from memory.api import (
    InvalidInputError,
    LongPaginator,
    NotFoundError,
    PageRequest,
    clean_text,
    listed_space,
    parse_space,
    parse_uuid,
)

_PAGE_SIZE = 50
# Errors shown at a field of the form, which keeps its values.
_FORM_ERRORS = (InvalidInputError, ConflictError)


@require_http_methods(["GET", "POST"])
def saved_prompts(request: PageRequest) -> HttpResponse:
    """List the prompts that this person reads, by pages, filtered by space and by name; POST adds one.

    `?from=` is a turn whose message fills the form. `?at=` opens the page with this prompt, if `?page=` names none.
    """
    if request.method == "GET":
        turn_id = request.GET.get("from", "")
        text = ""
        if turn_id:
            text = access.own_turn(request.user.pk, parse_uuid(turn_id) or uuid.UUID(int=0)).message
        return _page(request, _form(text=text), chosen=request.GET.get("space", ""))
    name, text = _posted(request)
    try:
        space = parse_space(request) or memory.personal_space(request.user.pk)
        prompt = prompt_library.add(space, name=name, text=text, by=request.user.pk)
    except _FORM_ERRORS as error:
        return _page(
            request, _form(name=name, text=text, error=error), chosen=request.POST.get("space", ""), status=422
        )
    messages.success(request, _("Added. Type /%(name)s in a thread to use it.") % {"name": prompt.name})
    return redirect(_url_of(prompt))


@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, prompt_id: uuid.UUID) -> HttpResponse:
    """Show the name and text of a prompt to be changed; POST changes them."""
    prompt = access.prompt_to_change(request.user.pk, prompt_id)
    context: dict[str, object] = {"section": "settings"}
    if request.method == "GET":
        return render(request, "chat/edit_saved_prompt.html", context | _form(name=prompt.name, text=prompt.text))
    name, text = _posted(request)
    try:
        prompt_library.edit(prompt, name=name, text=text)
    except InvalidMessageError as error:
        context |= _form(name=name, text=text, error=error)
        return render(request, "chat/edit_saved_prompt.html", context, status=422)
    messages.success(request, _("Saved."))
    return redirect(_url_of(prompt))


@require_http_methods(["GET", "POST"])
def delete(request: PageRequest, prompt_id: uuid.UUID) -> HttpResponse:
    """Ask for confirmation, then delete the prompt."""
    prompt = access.prompt_to_change(request.user.pk, prompt_id)
    if request.method == "GET":
        consequence = _("It is deleted for good.")
        if prompt.space.owner_id is None:
            sentence = _("It is deleted for good, for everyone who reads %(space)s.")
            consequence = sentence % {"space": prompt.space.display_name}
        context = {
            "section": "settings",
            "question": _("Delete the prompt /%(name)s?") % {"name": prompt.name},
            "act": _("Delete"),
            "consequence": consequence,
            "action": reverse("delete_saved_prompt", args=[prompt.id]),
            "fields": [],
            "back_url": _url_of(prompt),
        }
        return render(request, "memory/confirm.html", context)
    prompt_library.delete(prompt)
    messages.success(request, _("Prompt deleted."))
    return redirect("saved_prompts")


@require_GET
def offered(request: PageRequest) -> HttpResponse:
    """Return the prompts whose names begin with `?message=`, which begins with a slash, for the list that it opens."""
    if not request.htmx:
        return redirect("saved_prompts")
    rows = offered_rows(request.user.pk, request.GET.get("message", ""))
    return render(request, "chat/_offered_prompts.html", {"rows": rows})


@require_GET
def prompt_text(request: PageRequest, prompt_id: uuid.UUID) -> HttpResponse:
    """Return the text of a prompt, for the composer."""
    try:
        prompt = access.get_prompt(request.user.pk, prompt_id)
    except NotFoundError:
        if not request.htmx:
            raise
        context = {"error": _("This prompt is not available any more. Choose another one.")}
        return render(request, "chat/_composer_error.html", context, status=404)
    if not request.htmx:
        return redirect(_url_of(prompt))
    return render(request, "chat/_composer_filled.html", {"text": prompt.text})


def _posted(request: PageRequest) -> tuple[str, str]:
    return clean_text(request.POST.get("name", "")), clean_text(request.POST.get("text", ""))


def _form(*, name: str = "", text: str = "", error: Exception | None = None) -> dict[str, object]:
    """Return the values of the form, and the errors at the fields that they concern: that of the name is raised first."""
    concerns_text = isinstance(error, InvalidMessageError) and not isinstance(error, InvalidNameError)
    return {
        "name": name,
        "text": text,
        "name_error": str(error) if error and not concerns_text else "",
        "text_error": prompt_library.find_text_error(text) if error else "",
        "max_name_length": SavedPrompt.MAX_NAME_LENGTH,
        "max_length": SavedPrompt.MAX_LENGTH,
    }


def _page(request: PageRequest, form: dict[str, object], *, chosen: str, status: int = 200) -> HttpResponse:
    space, query = listed_space(request), clean_text(request.GET.get("q", "")).strip()
    prompts = prompt_library.list_readable(request.user.pk, space=space, query=query)
    number = request.GET.get("page") or _page_number(prompts, parse_uuid(request.GET.get("at", "")))
    page = LongPaginator(prompts, _PAGE_SIZE, is_by_name=True).get_page(number)
    context = {
        "section": "settings",
        "sections": sections(request.user.pk, page),
        "page": page,
        "space": space,
        "query": query,
        "choices": memory.list_open_spaces(request.user.pk),
        "chosen": chosen,
    }
    return render(request, "chat/prompt_library.html", context | form, status=status)


def _page_number(prompts: QuerySet[SavedPrompt], prompt_id: uuid.UUID | None) -> int:
    """Return the number of the page with this prompt, 1 if it is on none."""
    ids = list(prompts.values_list("id", flat=True)) if prompt_id else []
    return ids.index(prompt_id) // _PAGE_SIZE + 1 if prompt_id in ids else 1


def _url_of(prompt: SavedPrompt) -> str:
    return reverse("saved_prompts", query={"at": prompt.id}, fragment=f"prompt-{prompt.id}")
