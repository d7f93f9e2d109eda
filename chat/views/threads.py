"""New threads and messages, the page of a thread, and the switches for its memory and for searches of the web."""

from __future__ import annotations

import uuid

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat import access, commands, services
from chat.answers import runner
from chat.errors import ConflictError, UsageLimitError
from chat.realtime import frames
from chat.rows.queue import queue_announcement
from chat.rows.usage import usage_notice
from chat.threads.memory_settings import exchanges_of
from chat.threads.reader_marks import mark_read
from chat.views.composer import composer_error, run_command, sent_attachment_ids
from chat.views.form_parsing import parse_client_key
from chat.views.model_picker import model_of_new_thread
from chat.views.recall_filter import parse_filter_of_new_thread
from chat.views.thread_page import composer_context, thread_page
from chat.views.tools import parse_server_ids
from chat.web_search.records import is_available, set_web_search
from memory.api import (
    InvalidInputError,
    PageRequest,
    RateLimitedError,
    clean_text,
    count_message,
    format_number,
    parse_number,
    parse_space,
)

# Of a message that a URL puts into the composer.
_MAX_URL_MESSAGE = 2000
# Errors shown at the composer, which keeps its text.
_COMPOSER_ERRORS = (InvalidInputError, ConflictError, RateLimitedError, UsageLimitError)


@require_http_methods(["GET", "POST"])
def new_thread(request: PageRequest) -> HttpResponse:
    """Show an empty page; POST creates a thread with its first message."""
    if request.method == "GET":
        return thread_page(request, None, text=clean_text(request.GET.get("say", ""))[:_MAX_URL_MESSAGE])
    attachment_ids: list[uuid.UUID] = []
    try:
        message, key = _parse_message(request)
        if commands.is_command(message):
            return run_command(request, None, message)
        attachment_ids = sent_attachment_ids(request)
        recall_filter = parse_filter_of_new_thread(request.POST, request.user.pk)
        posted = services.create_thread_with_message(
            request.user.pk,
            message=message,
            client_key=key,
            recall_filter=recall_filter,
            is_remembered=request.POST.get("remembered", "yes") == "yes",
            attachments=attachment_ids,
            space=parse_space(request),
            is_typed=True,
            model=model_of_new_thread(request),
            tool_server_ids=parse_server_ids(request.POST.getlist("tools")),
            has_web_search=is_available() and request.POST.get("web_search") == "yes",
        )
    except _COMPOSER_ERRORS as error:
        return composer_error(request, None, error, attachment_ids)
    runner.publish_and_start(posted)
    target = redirect("thread", thread_id=posted.turn.thread_id)
    if request.htmx:
        return HttpResponse(headers={"HX-Redirect": target.url})
    return target


@require_GET
def thread(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Show the latest turns of a thread, or those at positions from `?from=` to before `?until=`."""
    thread = access.get_marked_thread(request.user.pk, thread_id)
    mark_read(thread, request.user.pk)
    text = clean_text(request.GET.get("say", ""))[:_MAX_URL_MESSAGE]
    return thread_page(request, thread, text=text, start=_position(request, "from"), until=_position(request, "until"))


@require_POST
def post_message(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Post a message to a thread; 2xx means that it is saved."""
    attachment_ids: list[uuid.UUID] = []
    try:
        message, key = _parse_message(request)
        if commands.is_command(message):
            return run_command(request, access.get_marked_thread(request.user.pk, thread_id), message)
        attachment_ids = sent_attachment_ids(request)
        posted = services.post_message(
            thread_id,
            author_id=request.user.pk,
            message=message,
            client_key=key,
            attachments=attachment_ids,
            is_typed=True,
        )
    except _COMPOSER_ERRORS as error:
        return composer_error(request, access.get_marked_thread(request.user.pk, thread_id), error, attachment_ids)
    published = runner.publish_and_start(posted, is_returned=bool(request.htmx))
    if not request.htmx:
        return redirect(f"{reverse('thread', args=[thread_id])}#turn-{posted.turn.id}")
    frame = published or frames.new_turn(posted.turn.id)
    announcement = queue_announcement(posted.queue_position) if posted.queue_position else ""
    context = {
        "composer": composer_context(),
        "announcement": announcement,
        "has_usage_limits": posted.has_usage_limits,
        "usage_notice": usage_notice(request.user.pk, posted.turn.thread.space) if posted.has_usage_limits else None,
    }
    reset = render(request, "chat/_composer_reset.html", context)
    return HttpResponse(frame.html.encode() + reset.content)


@require_http_methods(["GET", "POST"])
def set_memory(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Switch a thread's memory on or off; before it is switched off, ask whether to forget its exchanges."""
    thread = access.get_owned_thread(request.user.pk, thread_id)
    if request.method == "GET":
        context = {"section": "thread", "thread": thread, "count": exchanges_of(thread).count()}
        return render(request, "chat/disable_memory.html", context)
    services.set_memory_enabled(thread, request.POST.get("remembered") == "yes")
    if request.POST.get("forget") == "yes":
        count = services.forget_thread_exchanges(thread, by=request.user.pk)
        sentence = ngettext(
            "%(count)s exchange forgotten. Nobody can recall or find it any more.",
            "%(count)s exchanges forgotten. Nobody can recall or find them any more.",
            count,
        )
        messages.success(request, sentence % {"count": format_number(count)})
    return redirect("thread", thread_id=thread_id)


@require_POST
def switch_web_search(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Search the web for the next messages of a thread, or stop doing so."""
    thread = access.thread_to_configure(request.user.pk, thread_id)
    set_web_search(thread, request.POST.get("web_search") == "yes")
    return redirect("thread", thread_id=thread_id)


def _position(request: PageRequest, name: str) -> int | None:
    return parse_number(request.GET.get(name, ""))


def _parse_message(request: PageRequest) -> tuple[str, uuid.UUID]:
    count_message(request.user.pk)
    key = parse_client_key(request)
    return clean_text(request.POST.get("message", "")), key
