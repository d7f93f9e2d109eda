"""Actions on threads: rename, mark, continue, move, export, delete; and the page that lists all threads."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import content_disposition_header, url_has_allowed_host_and_scheme
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from chat import access, services, signals
from chat import export as exports
from chat.errors import InvalidMessageError, ThreadBusyError
from chat.models import Thread
from chat.quick_search import contains_all_words, find_related
from chat.realtime import frames
from chat.realtime.hub import publish
from chat.threads.reader_marks import with_marks
from memory.api import (
    CatoError,
    InvalidInputError,
    LongPaginator,
    NotFoundError,
    PageRequest,
    audience_text,
    clean_text,
    listed_space,
    newest_in_spaces,
    parse_space,
    readable_space_ids,
    space_choices,
)

_PAGE_SIZE = 50
_EXPORTS = {
    "md": (exports.to_markdown, "text/markdown; charset=utf-8"),
    "json": (exports.to_json, "application/json"),
    "html": (exports.to_html, "text/html; charset=utf-8"),
}


@require_GET
def threads(request: PageRequest) -> HttpResponse:
    """List readable threads, newest first, filtered by words of the title and by space; `?archived=yes` lists archived ones."""
    query = clean_text(request.GET.get("q", "")).strip()
    is_archive = request.GET.get("archived") == "yes"
    space = listed_space(request)
    readable = access.readable_threads(request.user.pk)
    readable = readable if space is None else readable.filter(space=space)
    rows = with_marks(readable, request.user.pk).select_related("space")
    rows = rows.filter(archived_at__isnull=not is_archive)
    matching = contains_all_words(rows, query.split(), "title").order_by("-last_message_at")
    spaces = readable_space_ids(request.user.pk) if space is None else [space.pk]
    newest = partial(newest_in_spaces, matching, spaces, by="last_message_at")
    # With words or in the archive, few of all threads match, and sorting them is quicker.
    first = None if query or is_archive else newest
    page = LongPaginator(matching, _PAGE_SIZE, first=first).get_page(request.GET.get("page"))
    context = {"section": "threads", "page": page, "query": query, "is_archive": is_archive, "space": space}
    return render(request, "chat/threads.html", context)


@require_http_methods(["GET", "POST"])
def rename(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Show the form to rename a thread; POST renames it."""
    thread = access.get_owned_thread(request.user.pk, thread_id)
    if request.method == "GET":
        return render(request, "chat/rename.html", {"section": "thread", "thread": thread})
    try:
        services.rename_thread(thread, request.POST.get("title", ""))
    except InvalidMessageError as error:
        messages.error(request, str(error))
    return redirect("thread", thread.id)


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark of a thread: the service that sets it, what the person is told, and the mark that undoes it."""

    set: Callable[[Thread, uuid.UUID, bool], None]
    value: bool
    text: str
    undo: str


_MARKS = {
    "pin": Mark(services.set_pinned, True, gettext_noop("Pinned for you."), "unpin"),
    "unpin": Mark(services.set_pinned, False, gettext_noop("Unpinned for you."), "pin"),
    "mute": Mark(services.set_muted, True, gettext_noop("Muted: no unread mark, no notifications."), "unmute"),
    "unmute": Mark(services.set_muted, False, gettext_noop("No longer muted for you."), "mute"),
    "archive": Mark(services.set_archived, True, gettext_noop("Archived for you."), "unarchive"),
    "unarchive": Mark(services.set_archived, False, gettext_noop("In your list again."), "archive"),
}


@require_POST
def set_mark(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Pin, mute or archive a thread for this person, or undo that; then show the page from which it was asked."""
    thread = access.get_thread(request.user.pk, thread_id)
    mark = _MARKS.get(request.POST.get("mark", ""))
    if mark is None:
        raise NotFoundError
    mark.set(thread, request.user.pk, mark.value)
    undo = '<button type="submit" class="link" form="action-form" formaction="{}" name="mark" value="{}">{}</button>'
    address = reverse("set_thread_mark", args=[thread_id])
    messages.success(request, format_html("{} " + undo, _(mark.text), address, mark.undo, _("Undo")))
    referrer = request.headers.get("Referer", "")
    if url_has_allowed_host_and_scheme(referrer, request.get_host()):
        return redirect(referrer)
    return redirect("thread", thread_id)


@require_GET
def menu(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Show what this person may do with a thread of the list."""
    thread = access.get_marked_thread(request.user.pk, thread_id)
    row = {
        "id": thread.id,
        "title": thread.title,
        "is_own": "owner" in access.roles_in_thread(request.user.pk, thread),
        "is_pinned": thread.pinned_at is not None,
        "is_muted": thread.muted_at is not None,
        "is_archived": thread.archived_at is not None,
    }
    return render(request, "chat/thread_menu.html", {"section": "threads", "thread": row})


@require_http_methods(["GET", "POST"])
def move(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Show the spaces to which a thread can move; POST moves it."""
    thread = access.get_owned_thread(request.user.pk, thread_id)
    if request.method == "GET":
        spaces = space_choices(request.user.pk, thread.space_id)
        others = thread.turns.exclude(author_id=request.user.pk).count()
        context = {"section": "thread", "thread": thread, "places": spaces, "others": others}
        return render(request, "chat/move.html", context)
    try:
        to = parse_space(request)
        if to is not None:
            services.move_thread(thread, to=to, by=request.user.pk)
            messages.success(request, _("Moved. %(audience)s") % {"audience": audience_text(to)})
    except (InvalidInputError, ThreadBusyError) as error:
        messages.error(request, str(error))
    return redirect("thread", thread_id)


@require_GET
def related(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Show threads on the subject of this thread's last messages."""
    thread = access.get_thread(request.user.pk, thread_id)
    context: dict[str, object] = {"section": "thread", "thread": thread}
    try:
        context["threads"] = [other for other, _score in find_related(thread, request.user.pk)]
    except CatoError as error:
        context["error"] = str(error)
    return render(request, "chat/related.html", context)


@require_POST
def continue_thread(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Start the thread's next session."""
    thread = access.get_thread(request.user.pk, thread_id)
    session = services.continue_thread(thread, person_id=request.user.pk)
    messages.success(request, _("Your next message starts session %(number)s.") % {"number": session.seq + 1})
    return redirect("thread", thread_id)


@require_GET
def export(request: PageRequest, thread_id: uuid.UUID, kind: str) -> HttpResponse:
    """Download the thread as Markdown, JSON or HTML."""
    thread = access.get_thread(request.user.pk, thread_id)
    if kind not in _EXPORTS:
        raise NotFoundError
    write, content_type = _EXPORTS[kind]
    turns = thread.turns.active_branch().select_related("author").iterator(chunk_size=200)
    response = HttpResponse("".join(write(thread, turns)), content_type=content_type)
    name = f"{slugify(thread.title, allow_unicode=True)[:80] or 'thread'}.{kind}"
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=name) or "attachment"
    signals.exported.send(sender=None, by=request.user.pk, thread_id=thread_id, kind=kind)
    return response


@require_http_methods(["GET", "POST"])
def delete(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Ask for confirmation, then delete the thread; the page offers to undo it for ten seconds."""
    thread = access.get_owned_thread(request.user.pk, thread_id)
    if request.method == "GET":
        return render(request, "chat/delete_thread.html", {"section": "thread", "thread": thread})
    try:
        services.delete_thread(thread)
    except ThreadBusyError as error:
        messages.error(request, str(error))
        return redirect("thread", thread_id)
    undo = '<button type="submit" class="link" form="action-form" formaction="{}">{}</button>'
    messages.success(
        request, format_html("{} " + undo, _("Deleted."), reverse("restore_thread", args=[thread_id]), _("Undo"))
    )
    return redirect("new_thread")


@require_POST
def restore(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Restore a deleted thread."""
    thread = access.get_deleted_thread(request.user.pk, thread_id)
    if not services.restore_thread(thread):
        messages.error(request, _("This thread can no longer be restored."))
        return redirect("new_thread")
    messages.success(request, _("Thread restored."))
    return redirect("thread", thread_id)


@require_http_methods(["GET", "POST"])
def delete_turns(request: PageRequest, thread_id: uuid.UUID) -> HttpResponse:
    """Ask for confirmation, then delete the last turns and forget their exchanges."""
    thread = access.get_owned_thread(request.user.pk, thread_id)
    value = request.POST.get("n") or request.GET.get("n", "1")
    count = int(value) if value.isdecimal() and len(value) < 4 else 1
    if request.method == "GET":
        last = services.last_turns(thread, count)
        context = {"section": "thread", "thread": thread, "count": len(last.ids), "other_count": last.other_count}
        return render(request, "chat/delete_turns.html", context)
    try:
        last = services.delete_last_turns(thread, count, by=request.user.pk)
    except ThreadBusyError as error:
        messages.error(request, str(error))
        return redirect("thread", thread_id)
    publish(frames.branch_switched(thread.id, last.ids, []))
    deleted = len(last.ids)
    sentence = ngettext("%(count)s turn deleted and forgotten.", "%(count)s turns deleted and forgotten.", deleted)
    messages.success(request, sentence % {"count": deleted})
    return redirect("thread", thread_id)
