"""What entries of the audit log are about: current names with links, for what the administrator may read.

Entries contain ids. A title of a thread or document is shown only to administrators who can read its space; others see its
kind and its space.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from cato_web.accounts.models import ApiToken, AuditEntry, User
from chat.models import Thread
from memory import api as memory
from memory.api import Document, Exchange, Operation, Space, space_label

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_Action = AuditEntry.Action
_ROLES = dict(User.Role.choices)


@dataclass(frozen=True, slots=True)
class TargetPart:
    """A part of a target: text, or with `id` the name of a thing, and with `url` a link to it."""

    text: str
    id: str = ""
    url: str = ""


def target_parts(entries: Sequence[AuditEntry], viewer_id: uuid.UUID) -> list[list[TargetPart]]:
    """Return the parts of each entry's target as this administrator may see them."""
    ids = {uuid.UUID(found) for entry in entries for found in _ID.findall(entry.target)}
    things = _find_things(ids, viewer_id)
    return [list(_parts(entry, things)) for entry in entries]


def _parts(entry: AuditEntry, things: dict[uuid.UUID, TargetPart]) -> Iterator[TargetPart]:
    end = 0
    for found in _ID.finditer(entry.target):
        text = entry.target[end : found.start()]
        thing = things.get(uuid.UUID(found[0]))
        # The name of a new group and the kind of an operation are part of the entry, and of the thing if it still exists.
        if thing is None or entry.action not in (_Action.GROUP_CREATED, _Action.OPERATION_STARTED):
            yield from _text(text, is_between=end > 0)
        yield thing or TargetPart(_missing_text(entry.action), found[0])
        end = found.end()
    yield from _text(entry.target[end:], is_between=False)


def _text(text: str, *, is_between: bool) -> Iterator[TargetPart]:
    """Yield the text around the names, if any, with a comma between two names."""
    if text == " to ":
        yield TargetPart(_(" to "))
    elif text.strip():
        yield TargetPart(str(_ROLES.get(text, text)))
    elif is_between:
        yield TargetPart(", ")


def _missing_text(action: str) -> str:
    """Return the text for what the database no longer contains."""
    texts = {
        "thread": _("a deleted thread"),
        "document": _("a deleted document"),
        "exchange": _("a forgotten exchange"),
        "group": _("a deleted group"),
        "project": _("a deleted project"),
        "space": _("a deleted space"),
        "token": _("a revoked API token"),
        "session": _("an ended sign-in"),
        "operation": _("a deleted maintenance task"),
    }
    return texts.get(action.split(".")[0], _("something that no longer exists"))


def _space_text(space: Space) -> str:
    """Return the name of a space after "in", which is another case in some languages."""
    if space.owner is None:
        return str(space.display_name)
    return pgettext("after: in", "the personal space of %(name)s") % {"name": space.owner}


def _find_things(ids: set[uuid.UUID], viewer_id: uuid.UUID) -> dict[uuid.UUID, TargetPart]:
    """Map the ids to what they belong to, with one statement for each kind."""
    readable, visible = memory.readable_space_ids(viewer_id), memory.admin_visible_space_ids(viewer_id)
    things: dict[uuid.UUID, TargetPart] = {}

    def add(id: uuid.UUID, text: str, url: str = "") -> None:
        things[id] = TargetPart(text, str(id), url)

    for person in User.objects.filter(pk__in=ids):
        url = reverse("admin_people", query={"q": person.email}) if person.left_at is None else ""
        add(person.pk, person.name, url)
    for space in Space.objects.filter(pk__in=ids).select_related("owner"):
        can_open = space.pk in readable or space.has_members
        add(space.pk, space_label(space), reverse("space", args=[space.pk]) if can_open else "")
    for thread in Thread.objects.filter(pk__in=ids).select_related("space__owner"):
        where = {"space": _space_text(thread.space)}
        if thread.deleted_at is not None:
            add(thread.pk, _("a deleted thread in %(space)s") % where)
        elif thread.space_id in visible:
            add(thread.pk, thread.title, reverse("thread", args=[thread.pk]) if thread.space_id in readable else "")
        else:
            add(thread.pk, _("a thread in %(space)s") % where)
    for document in Document.objects.filter(pk__in=ids).select_related("space__owner"):
        where = {"space": _space_text(document.space)}
        if document.forgotten_at is not None:
            add(document.pk, _("a deleted document in %(space)s") % where)
        elif document.space_id in visible:
            add(document.pk, document.name, memory.document_url(document.pk) if document.space_id in readable else "")
        else:
            add(document.pk, _("a document in %(space)s") % where)
    for exchange in Exchange.objects.filter(pk__in=ids).select_related("space__owner"):
        where = {"space": _space_text(exchange.space)}
        if exchange.forgotten_at is not None:
            add(exchange.pk, _("a forgotten exchange in %(space)s") % where)
        else:
            url = exchange.get_absolute_url() if exchange.space_id in readable else ""
            add(exchange.pk, _("an exchange in %(space)s") % where, url)
    for operation in Operation.objects.filter(pk__in=ids):
        add(operation.pk, operation.get_kind_display(), reverse("admin_operation", args=[operation.pk]))
    for token in ApiToken.objects.filter(pk__in=ids):
        add(token.pk, _token_text(token, viewer_id))
    return things


def _token_text(token: ApiToken, viewer_id: uuid.UUID) -> str:
    """Return the name of a token, which its owner entered, for its owner, and its first characters for others."""
    return token.name if token.person_id == viewer_id else _("API token %(prefix)s…") % {"prefix": token.prefix}


def token_texts(entries: Sequence[AuditEntry], viewer_id: uuid.UUID) -> list[str]:
    """Return for each entry the API token through which a program acted; "" if no program did."""
    ids = {entry.token_id for entry in entries if entry.token_id is not None}
    texts = {token.pk: _token_text(token, viewer_id) for token in ApiToken.objects.filter(pk__in=ids)} if ids else {}
    return ["" if e.token_id is None else texts.get(e.token_id, _("a revoked API token")) for e in entries]
