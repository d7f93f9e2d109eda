"""Answers to what the composer sent: the result of a command, the text of a saved prompt, or an error."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render

from chat import commands, prompt_library, services
from chat.attachments import own_attachments, store_attachment
from chat.models import Thread, Turn
from chat.rows.additions import addition_rows
from chat.views.form_parsing import parse_attachment_ids
from chat.views.thread_page import composer_context, thread_page
from memory.api import (
    CatoError,
    InvalidInputError,
    PageRequest,
    clean_text,
    parse_space,
)


def sent_attachment_ids(request: PageRequest) -> list[uuid.UUID]:
    """Return the ids of the attachments, with those of files that a form without script sends with its message.

    A rejected file does not prevent sending; the next page says why.
    """
    ids = parse_attachment_ids(request)
    for file in request.FILES.getlist("files"):
        try:
            ids.append(store_attachment(file, owner_id=request.user.pk).id)
        except InvalidInputError as error:
            messages.error(request, str(error))
    return ids


def run_command(request: PageRequest, thread: Thread | None, message: str) -> HttpResponse:
    """Run the command of a message and show its result, or put the saved prompt that it names into the composer."""
    user = request.user
    if text := prompt_library.find_text(user.pk, message):
        return _filled(request, thread, text)

    def set_context_mode(mode: str) -> None:
        user.context_mode = mode
        user.save(update_fields=["context_mode"])

    context = commands.CommandContext(
        person_id=user.pk,
        is_administrator=user.is_administrator,
        context_mode=user.context_mode or settings.CATO.vector_store.context_mode,
        set_context_mode=set_context_mode,
        thread=thread,
        space=None if thread else parse_space(request),
    )
    try:
        card = commands.run(message, context)
    except CatoError as error:
        return composer_error(request, thread, error)
    if card.has_additions and thread is not None:
        turn = services.keep_additions(
            thread, person_id=user.pk, exchange_ids=card.exchange_ids, document_ids=card.document_ids
        )
        if turn is not None:
            return _kept(request, thread, turn, card)
    if card.redirect_url:
        return HttpResponse(headers={"HX-Redirect": card.redirect_url}) if request.htmx else redirect(card.redirect_url)
    if request.htmx:
        return render(request, "chat/_command_response.html", {"card": card, "composer": composer_context()})
    return thread_page(request, thread, card=card)


def _kept(request: PageRequest, thread: Thread, turn: Turn, card: commands.CommandResult) -> HttpResponse:
    """Show what a command added to memory, which the thread keeps, and what was rejected, which it does not."""
    errors = [chip for chip in card.chips if chip.error]
    rejected = replace(card, text="", chips=errors) if errors else None
    if not request.htmx:
        return thread_page(request, thread, card=rejected)
    rows = addition_rows([turn.id], person_id=request.user.pk, is_administrator=request.user.is_administrator)
    context = {
        "turn_id": turn.id,
        "additions": rows.get(turn.id, ()),
        "card": rejected,
        "composer": composer_context(),
        "announcement": card.title,
    }
    return render(request, "chat/_additions_response.html", context)


def _filled(request: PageRequest, thread: Thread | None, text: str) -> HttpResponse:
    """Put the text of a saved prompt, whose name was sent, into the composer. Without script the page is new."""
    if request.htmx:
        return render(request, "chat/_composer_filled.html", {"text": text})
    attachments = own_attachments(sent_attachment_ids(request), owner_id=request.user.pk)
    return thread_page(request, thread, text=text, attachments=attachments)


def composer_error(
    request: PageRequest, thread: Thread | None, error: CatoError, attachment_ids: Sequence[uuid.UUID] = ()
) -> HttpResponse:
    """Show the error at the composer. Without script the page is new, and has the text and the attachments again."""
    if request.htmx:
        return render(request, "chat/_composer_error.html", {"error": str(error)}, status=422)
    text = clean_text(request.POST.get("message", ""))[: settings.CATO.chat.max_message_chars]
    attachments = own_attachments(attachment_ids, owner_id=request.user.pk)
    return thread_page(request, thread, error=str(error), text=text, attachments=attachments, status=422)
