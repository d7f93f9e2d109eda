"""The page of instructions, the offer to keep one on a turn, and the switch in a thread."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat import access
from chat.errors import ConflictError, InvalidMessageError
from chat.instructions import editing
from chat.models import Instruction, Turn
from chat.rows.instructions import list_offers, offer_of_turn, sections
from memory import api as memory
from memory.api import InvalidInputError, PageRequest, parse_uuid

# Errors shown at the field, which keeps its text.
_FIELD_ERRORS = (InvalidInputError, ConflictError)


@require_http_methods(["GET", "POST"])
def instructions(request: PageRequest) -> HttpResponse:
    """List the instructions that this person reads; POST adds one for them or a space that they manage."""
    if request.method == "GET":
        return _page(request)
    text = request.POST.get("text", "")
    try:
        editing.add(_posted_space(request), text, by=request.user.pk)
    except _FIELD_ERRORS as error:
        return _page(request, text=text, error=str(error), status=422)
    messages.success(request, _("Added. It applies from the next answer on."))
    return redirect(_next(request))


@require_POST
def change(request: PageRequest, instruction_id: uuid.UUID) -> HttpResponse:
    """Keep, dismiss, or switch an instruction on or off, depending on the field `action`."""
    row = access.instruction_to_change(request.user.pk, instruction_id)
    action = request.POST.get("action", "")
    try:
        text = _change(request, row, action)
    except _FIELD_ERRORS as error:
        if not request.htmx:
            raise
        turn = access.turn_by_id(request.user.pk, row.turn_id) if row.turn_id else None
        return _offer(request, turn, error=str(error))
    if request.htmx:
        return render(request, "chat/_instruction_decided.html", {"text": text})
    messages.success(request, text)
    return redirect(f"{_next(request)}#instruction-{row.id}")


@require_http_methods(["GET", "POST"])
def edit(request: PageRequest, instruction_id: uuid.UUID) -> HttpResponse:
    """Show the text of an instruction to be changed; POST changes it."""
    row = access.instruction_to_change(request.user.pk, instruction_id)
    context = {"section": "settings", "instruction": row, "text": row.text, "error": "", "next": _next(request)}
    if request.method == "GET":
        return render(request, "chat/edit_instruction.html", context)
    text = request.POST.get("text", "")
    try:
        editing.edit(row, text)
    except InvalidMessageError as error:
        return render(request, "chat/edit_instruction.html", context | {"text": text, "error": str(error)}, status=422)
    messages.success(request, _("Saved."))
    return redirect(f"{_next(request)}#instruction-{row.id}")


@require_http_methods(["GET", "POST"])
def delete(request: PageRequest, instruction_id: uuid.UUID) -> HttpResponse:
    """Ask for confirmation, then delete the instruction."""
    row = access.instruction_to_change(request.user.pk, instruction_id)
    if request.method == "GET":
        consequence = _("It no longer applies.")
        if row.turn_id:
            consequence = _("It no longer applies. The message stays in its thread.")
        context = {
            "section": "settings",
            "question": _("Delete this instruction?"),
            "act": _("Delete"),
            "consequence": consequence,
            "action": reverse("delete_instruction", args=[row.id]),
            "fields": [("next", _next(request))],
            "back_url": _next(request),
        }
        return render(request, "memory/confirm.html", context)
    editing.delete(row)
    messages.success(request, _("Deleted. It no longer applies."))
    return redirect(_next(request))


@require_POST
def set_detection(request: PageRequest) -> HttpResponse:
    """Switch the detection of instructions in this person's messages on or off."""
    request.user.detects_instructions = request.POST.get("detect") == "yes"
    request.user.save(update_fields=["detects_instructions"])
    is_on = request.user.detects_instructions
    messages.success(request, _("Cato suggests instructions.") if is_on else _("Cato suggests no instructions."))
    return redirect("instructions")


@require_GET
def offer(request: PageRequest, turn_id: uuid.UUID) -> HttpResponse:
    """Return the offer to keep the instruction in a message, for its author; nothing for other readers."""
    turn = access.turn_by_id(request.user.pk, turn_id)
    return _offer(request, turn) if request.htmx else redirect("instructions")


@require_POST
def set_in_thread(request: PageRequest, thread_id: uuid.UUID, instruction_id: uuid.UUID) -> HttpResponse:
    """Switch an instruction on or off for the next answers of one thread."""
    thread = access.thread_to_configure(request.user.pk, thread_id)
    row = access.get_instruction(request.user.pk, instruction_id)
    is_on = request.POST.get("on") == "yes"
    editing.set_on_in_thread(thread, row.id, is_on)
    if not request.htmx:
        return redirect("thread", thread_id)
    url = reverse("set_thread_instruction", args=[thread_id, row.id])
    return render(request, "chat/_instruction_switch.html", {"url": url, "is_off": not is_on})


def _change(request: PageRequest, row: Instruction, action: str) -> str:
    """Do what was asked, and return a sentence that says so. Raises InvalidInputError, ConflictError."""
    if action == "keep":
        space = _posted_space(request)
        editing.keep(row, space=space)
        return _("Kept for you.") if space.owner_id else _("Kept for %(space)s.") % {"space": space.display_name}
    if action == "dismiss":
        editing.delete(row)
        return _("Dismissed. It no longer applies.")
    if action in ("on", "off"):
        editing.set_on(row, action == "on")
        return _("On.") if action == "on" else _("Off. It does not apply until you switch it on.")
    raise InvalidMessageError(_("This action does not exist."))


def _offer(request: PageRequest, turn: Turn | None, *, error: str = "") -> HttpResponse:
    found = offer_of_turn(request.user.pk, turn) if turn else None
    if found is None:
        return HttpResponse()
    return render(request, "chat/_instruction_offer.html", {"offer": found, "heading": False, "error": error})


def _posted_space(request: PageRequest) -> memory.Space:
    """Return the posted space, which this person manages; the personal one by default. Raises NotFoundError."""
    value = request.POST.get("space", "")
    if not value:
        return memory.personal_space(request.user.pk)
    return access.space_to_instruct(request.user.pk, parse_uuid(value) or uuid.UUID(int=0))


def _page(request: PageRequest, *, text: str = "", error: str = "", status: int = 200) -> HttpResponse:
    context = {
        "section": "settings",
        "offers": list_offers(request.user.pk),
        "sections": sections(request.user.pk),
        "choices": access.spaces_to_instruct(request.user.pk),
        "chosen": request.POST.get("space", ""),
        "text": text,
        "error": error,
        "is_detecting": request.user.detects_instructions,
        "max_length": Instruction.MAX_LENGTH,
    }
    return render(request, "chat/instructions.html", context, status=status)


def _next(request: PageRequest) -> str:
    """Return the path of the page to return to: that of a space, or that of all instructions."""
    path = request.POST.get("next") or request.GET.get("next", "")
    is_local = path.startswith("/") and url_has_allowed_host_and_scheme(path, None)
    return path if is_local else reverse("instructions")
