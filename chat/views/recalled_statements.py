"""A statement among the sources of an answer: what a reader decides about it there, in place."""

from __future__ import annotations

import uuid

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from chat import access, services
from chat.rows.knowledge import statement_rows
from chat.views.form_parsing import parse_revision
from memory import api as memory
from memory.api import (
    InvalidInputError,
    NotFoundError,
    PageRequest,
    StatementConflictError,
    VectorStoreDisabledError,
    clean_text,
    knowledge_decisions,
    parse_place,
)


@require_http_methods(["GET", "POST"])
def recalled_statement(request: PageRequest, statement_id: uuid.UUID) -> HttpResponse:
    """Return what an open item shows of its statement, with the form `form`; POST decides what `action` says.

    `at` is the id of the item on the page.
    """
    if request.method == "GET":
        return _fragment(request, statement_id, form=request.GET.get("form", ""))
    action = request.POST.get("action", "")
    if action == "forget":
        services.forget_statement(
            request.user.pk,
            statement_id,
            is_administrator=request.user.is_administrator,
            with_own_sources=request.POST.get("sources") == "yes",
        )
        # The frame of the turn, which every page gets, replaces the item.
        return HttpResponse(_("Forgotten"))
    text = clean_text(request.POST.get("text", ""))
    try:
        done = _decide(request, statement_id, action, text)
    except (StatementConflictError, InvalidInputError, VectorStoreDisabledError) as error:
        form = "correct" if action == "correct" else ""
        return _fragment(request, statement_id, form=form, text=text, error=str(error))
    return _fragment(request, statement_id, done=done)


def _decide(request: PageRequest, statement_id: uuid.UUID, action: str, text: str) -> str:
    """Decide about the revision that the person saw, and return what was done. Raises errors of memory."""
    revision = parse_revision(request)
    if action == "confirm":
        knowledge_decisions.confirm(request.user.pk, statement_id, revision=revision)
        return _("Confirmed by you.")
    if action == "correct":
        knowledge_decisions.correct(request.user.pk, statement_id, text, revision=revision)
        return _("Superseded by your statement.")
    raise InvalidInputError(_("Choose what to do."))


def _fragment(
    request: PageRequest, statement_id: uuid.UUID, *, form: str = "", text: str = "", done: str = "", error: str = ""
) -> HttpResponse:
    """Return the statement as it is now. Raises NotFoundError, also if none of its sources is left."""
    person = request.user
    statements = memory.load_statements([access.get_exchange(person.pk, statement_id).id])
    rows = statement_rows(statements, person.pk, is_administrator=person.is_administrator)
    if not rows:
        raise NotFoundError
    place = parse_place(request)
    context = {
        "row": rows[0],
        "url": f"{request.path}?at={place}",
        "place": place,
        "form": form,
        "text": text,
        "done": done,
        "error": error,
    }
    return render(request, "chat/_recalled_statement.html", context)
