"""Page that lists and adds notes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from memory.errors import InvalidInputError, VectorStoreDisabledError
from memory.exchanges.notes import add_note
from memory.exchanges.states import memory_states
from memory.models import Exchange
from memory.spaces import access
from memory.spaces.access import audience_text
from memory.text import excerpt
from memory.views.forms import listed_space, parse_space, space_choices
from memory.views.http import PageRequest
from memory.views.paging import LongPaginator

_PAGE_SIZE = 50
_EXCERPT = 240


@dataclass(frozen=True, slots=True)
class NoteRow:
    """One note of the list; `state` is its state in memory."""

    url: str
    text: str
    who: str
    space_kind: str
    space_name: str
    said_at: datetime
    state: str


@require_http_methods(["GET", "POST"])
def notes(request: PageRequest) -> HttpResponse:
    """List the notes, newest first; a POST adds one. A script fills in a page that somebody saves or shares."""
    text = request.POST.get("text", "")
    if request.method == "POST":
        try:
            space = parse_space(request) or access.personal_space(request.user.pk)
            add_note(text, space=space, owner_id=request.user.pk, source=Exchange.Source.NOTE, manual_entry=True)
        except (InvalidInputError, VectorStoreDisabledError) as error:
            return _page(request, text=text, error=str(error), status=422)
        messages.success(request, _("Remembered. %(audience)s") % {"audience": audience_text(space)})
        return redirect("notes")
    return _page(request)


def _page(request: PageRequest, *, text: str = "", error: str = "", status: int = 200) -> HttpResponse:
    space = listed_space(request)
    spaces = access.readable_space_ids(request.user.pk) if space is None else frozenset({space.pk})
    notes = access.in_spaces(Exchange.objects.findable().filter(source=Exchange.Source.NOTE), spaces)
    first_chunks = notes.filter(Q(chunk_index=None) | Q(chunk_index=0))
    page = LongPaginator(
        first_chunks.select_related("owner", "space").order_by("-timestamp", "id"), _PAGE_SIZE
    ).get_page(request.GET.get("page"))
    states = memory_states(note.pk for note in page)
    context = {
        "section": "documents",
        "tab": "notes",
        "page": page,
        "rows": [_note_row(note, states.get(note.pk, "")) for note in page],
        "places": space_choices(request.user.pk),
        "text": text,
        "space": space,
        "chosen": request.POST.get("space", request.GET.get("space", "")),
        "error": error,
        "notes_url": request.build_absolute_uri(reverse("notes")),
    }
    return render(request, "memory/notes.html", context, status=status)


def _note_row(note: Exchange, state: str) -> NoteRow:
    return NoteRow(
        url=note.get_absolute_url(),
        text=excerpt(note.user_message, _EXCERPT),
        who=str(note.owner),
        space_kind=note.space.kind,
        space_name=note.space.display_name,
        said_at=note.timestamp,
        state=state,
    )
