"""The page of a thread, new messages, and the switch for its memory."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat import access, commands, services
from chat.answers import runner
from chat.attachments import own_attachments, store_attachment
from chat.errors import ConflictError
from chat.llm import endpoint
from chat.models import Attachment, Thread, Turn
from chat.realtime import frames
from chat.realtime.presence import PresentUser, present_users
from chat.realtime.sync import WINDOW
from chat.rows.permissions import rows_for_reader
from chat.rows.receipts import receipts_at_turns
from chat.rows.turns import ThreadRow, thread_row, turn_rows
from chat.threads.memory_settings import exchanges_of
from chat.threads.read_markers import mark_read
from chat.views.form_parsing import parse_attachment_ids, parse_client_key
from chat.views.recall_filter import parse_filter_of_new_thread
from memory import api as memory
from memory.api import (
    CatoError,
    InvalidInputError,
    PageRequest,
    RateLimitedError,
    RecallFilter,
    clean_text,
    count_message,
    describe_recall_filter,
    format_metadata,
    format_number,
    parse_space,
    parse_uuid,
    space_choices,
    upload_limits,
)

# Of a message that a URL puts into the composer.
_MAX_URL_MESSAGE = 2000
# Errors shown at the composer, which keeps its text.
_COMPOSER_ERRORS = (InvalidInputError, ConflictError, RateLimitedError)


@require_http_methods(["GET", "POST"])
def new_thread(request: PageRequest) -> HttpResponse:
    """Show an empty page; POST creates a thread with its first message."""
    if request.method == "GET":
        return _page(request, None, text=clean_text(request.GET.get("say", ""))[:_MAX_URL_MESSAGE])
    attachment_ids: list[uuid.UUID] = []
    try:
        message, key = _parse_message(request)
        if commands.is_command(message):
            return _command(request, None, message)
        attachment_ids = _attachment_ids(request)
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
        )
    except _COMPOSER_ERRORS as error:
        return _error(request, None, error, attachment_ids)
    runner.publish_and_start(posted)
    target = redirect("thread", thread_id=posted.turn.thread_id)
    if request.htmx:
        return HttpResponse(headers={"HX-Redirect": target.url})
    return target


@require_GET
def thread(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Show the latest turns of a thread, or those at positions from `?from=` to before `?until=`."""
    thread = access.get_thread(request.user.pk, thread_id)
    mark_read(thread, request.user.pk)
    text = clean_text(request.GET.get("say", ""))[:_MAX_URL_MESSAGE]
    return _page(request, thread, text=text, start=_position(request, "from"), until=_position(request, "until"))


@require_POST
def post_message(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Post a message to a thread; 2xx means that it is saved."""
    thread = access.get_thread(request.user.pk, thread_id)
    attachment_ids: list[uuid.UUID] = []
    try:
        message, key = _parse_message(request)
        if commands.is_command(message):
            return _command(request, thread, message)
        attachment_ids = _attachment_ids(request)
        posted = services.post_message(
            thread,
            author_id=request.user.pk,
            message=message,
            client_key=key,
            attachments=attachment_ids,
            is_typed=True,
        )
    except _COMPOSER_ERRORS as error:
        return _error(request, thread, error, attachment_ids)
    published = runner.publish_and_start(posted, is_returned=bool(request.htmx))
    if not request.htmx:
        return redirect(f"{reverse('thread', args=[thread_id])}#turn-{posted.turn.id}")
    frame = published or frames.new_turn(posted.turn.id)
    reset = render(request, "chat/_composer_reset.html", {"composer": _composer()})
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


def _position(request: PageRequest, name: str) -> int | None:
    value = request.GET.get(name, "")
    return int(value) if value.isdecimal() and len(value) < 9 else None


def _parse_message(request: PageRequest) -> tuple[str, uuid.UUID]:
    count_message(request.user.pk)
    key = parse_client_key(request)
    return clean_text(request.POST.get("message", "")), key


def _attachment_ids(request: PageRequest) -> list[uuid.UUID]:
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


def _command(request: PageRequest, thread: Thread | None, message: str) -> HttpResponse:
    user = request.user

    def set_context_mode(mode: str) -> None:
        user.context_mode = mode
        user.save(update_fields=["context_mode"])

    context = commands.CommandContext(
        person_id=user.pk,
        is_administrator=user.is_administrator,
        context_mode=user.context_mode or settings.CATO.vector_store.context_mode,
        set_context_mode=set_context_mode,
        thread=thread,
    )
    try:
        card = commands.run(message, context)
    except CatoError as error:
        return _error(request, thread, error)
    if card.redirect_url:
        return HttpResponse(headers={"HX-Redirect": card.redirect_url}) if request.htmx else redirect(card.redirect_url)
    if request.htmx:
        return render(request, "chat/_command_response.html", {"card": card, "composer": _composer()})
    return _page(request, thread, card=card)


def _error(
    request: PageRequest, thread: Thread | None, error: CatoError, attachment_ids: Sequence[uuid.UUID] = ()
) -> HttpResponse:
    """Show the error at the composer. Without script the page is new, and has the text and the attachments again."""
    if request.htmx:
        return render(request, "chat/_composer_error.html", {"error": str(error)}, status=422)
    text = clean_text(request.POST.get("message", ""))[: settings.CATO.chat.max_message_chars]
    attachments = own_attachments(attachment_ids, owner_id=request.user.pk)
    return _page(request, thread, error=str(error), text=text, attachments=attachments, status=422)


def _composer(text: str = "", error: str = "", attachments: Sequence[Attachment] = ()) -> dict[str, object]:
    return {
        "text": text,
        "error": error,
        "client_key": uuid.uuid4(),
        "placeholder": _("Ask, or type / for commands"),
        "chips": [{"attachment": attachment} for attachment in attachments],
    }


@dataclass(frozen=True, slots=True)
class RecallFilterRow:
    """A recall filter: its description, and for a new thread the values to send with the first message."""

    words: list[str]
    change_url: str = ""
    ids: Sequence[uuid.UUID] = ()
    metadata_text: str = ""


def _recall_filter_row(request: PageRequest, thread: Thread | None, roles: frozenset[str]) -> RecallFilterRow:
    if thread is not None:
        words = _describe(RecallFilter.from_json(thread.recall_filter), request.user.pk)
        return RecallFilterRow(words, reverse("recall_filter", args=[thread.id]) if roles else "")
    try:
        data = request.POST if request.method == "POST" else request.GET
        recall_filter = parse_filter_of_new_thread(data, request.user.pk)
    except InvalidInputError as error:
        messages.error(request, str(error))
        return RecallFilterRow([])
    words = _describe(recall_filter, request.user.pk)
    return RecallFilterRow(words, ids=recall_filter.documents, metadata_text=format_metadata(recall_filter.metadata))


def _describe(recall_filter: RecallFilter, person_id: uuid.UUID) -> list[str]:
    if recall_filter.is_empty:
        return []
    return describe_recall_filter(recall_filter, spaces=memory.readable_space_ids(person_id))


def _window(thread: Thread, start: int | None, until: int | None) -> tuple[list[Turn], int | None]:
    """Return the turns to show, and the position of the next page (None: these are the latest)."""
    turns = thread.turns.active_branch().with_attachment_marks().select_related("author", "stopped_by")
    if start is None:
        return list(turns.order_by("-position")[:WINDOW])[::-1], None
    if until is not None:
        return list(turns.filter(position__gte=start, position__lt=until).order_by("position")[:WINDOW]), until
    page = list(turns.filter(position__gte=start).order_by("position")[: WINDOW + 1])
    return page[:WINDOW], page[WINDOW].position if len(page) > WINDOW else None


def _previous_page(thread: Thread, first: Turn) -> int | None:
    """Return the position of the page before `first`; None if `first` is the first turn of the active branch."""
    if first.position == 0:
        return None
    earlier = thread.turns.active_branch().filter(position__lt=first.position).order_by("-position")
    positions = list(earlier.values_list("position", flat=True)[:WINDOW])
    return positions[-1] if positions else None


def _thread_row(request: PageRequest, thread: Thread | None, roles: frozenset[str]) -> ThreadRow:
    current = endpoint.of_request(request)
    model = (thread.model if thread else "") or (current.model if current else "")
    return thread_row(
        thread,
        person_id=request.user.pk,
        roles=roles,
        model_name=model or (_("No model connected") if current is None else current.host),
        is_dummy=current is None,
    )


def _present(thread: Thread | None) -> Sequence[PresentUser]:
    """Return who else has the thread open; nobody else reads a thread of a personal space."""
    if thread is None or thread.space.owner_id is not None:
        return ()
    return present_users([thread.id]).get(thread.id, ())


def _page(
    request: PageRequest,
    thread: Thread | None,
    *,
    error: str = "",
    text: str = "",
    attachments: Sequence[Attachment] = (),
    card: commands.CommandResult | None = None,
    start: int | None = None,
    until: int | None = None,
    status: int = 200,
) -> HttpResponse:
    turns, later = _window(thread, start, until) if thread else ([], None)
    rows = turn_rows(thread, turns) if thread else []
    roles = access.roles_in_thread(request.user.pk, thread) if thread else frozenset({"owner"})
    row = _thread_row(request, thread, roles)
    erased = [turn_row.id for turn_row in rows if turn_row.is_text_deleted]
    receipts = receipts_at_turns(request.user.pk, erased, shown_id=parse_uuid(request.GET.get("receipt", "")))
    rows = [replace(turn_row, receipt=receipts.get(turn_row.id)) for turn_row in rows]
    everywhere = frozenset({"administrator"}) if request.user.is_administrator else frozenset()
    context = {
        "section": "thread" if thread else "new",
        # Only the latest turns are updated live, because new turns are appended to the page.
        "thread": replace(row, socket_url="") if later is not None else row,
        "earlier": _previous_page(thread, turns[0]) if thread and turns else None,
        "turns_from": turns[0].position if turns else None,
        "later": later,
        "turns": rows_for_reader(rows, request.user.pk, roles | everywhere),
        "active": next((r for r in rows if r.is_running), None),
        "composer": _composer(text, error, attachments),
        "max_attachments": settings.CATO.chat.max_attachments,
        "card": card,
        "upload_limits": upload_limits(),
        "recall_filter": _recall_filter_row(request, thread, roles),
        "commands": commands.for_roles(roles | everywhere),
        "present": _present(thread),
        "places": [] if thread else space_choices(request.user.pk),
    }
    return render(request, "chat/thread.html", context, status=status)
