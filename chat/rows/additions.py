"""Rows of what was added to memory with a command in a thread, for one reader: only what they may read."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import Addition
from memory import api as memory
from memory.api import (
    DocumentRow,
    Exchange,
    Space,
    UploadChip,
    document_row,
    document_statuses,
    format_number,
)

_MAX_SHOWN = 20  # chips and texts of a card


@dataclass(frozen=True, slots=True)
class NotePart:
    """A text of a note, and the URL of its exchange."""

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class AdditionRow:
    """The card of one command, with what it added. `is_private`: only this reader sees it."""

    command: str
    person_name: str
    added_at: datetime
    title: str
    parts: Sequence[NotePart]
    chips: Sequence[UploadChip]
    more: str
    is_private: bool


def addition_rows(
    turn_ids: Iterable[uuid.UUID], *, person_id: uuid.UUID, is_administrator: bool
) -> dict[uuid.UUID, list[AdditionRow]]:
    """Return the rows of these turns' additions, by turn, as far as this person may read what was added."""
    additions = list(Addition.objects.filter(turn_id__in=list(turn_ids)).select_related("person"))
    if not additions:
        return {}
    spaces = memory.readable_space_ids(person_id)
    exchanges = _exchanges(additions, spaces)
    documents = _documents(additions, spaces, person_id=person_id, is_administrator=is_administrator)
    commands: dict[tuple[uuid.UUID, uuid.UUID, datetime], list[Addition]] = defaultdict(list)
    for addition in additions:
        commands[addition.turn_id, addition.person_id, addition.added_at].append(addition)
    found: dict[uuid.UUID, list[AdditionRow]] = defaultdict(list)
    for (turn_id, _person_id, _added_at), rows in commands.items():
        notes = [exchanges[row.exchange_id] for row in rows if row.exchange_id in exchanges]
        files = [documents[row.document_id] for row in rows if row.document_id in documents]
        if notes:
            found[turn_id].append(_note_row(rows[0], notes))
        if files:
            found[turn_id].append(_files_row(rows[0], files))
    return found


def _exchanges(additions: Iterable[Addition], spaces: memory.SpaceIds) -> Mapping[uuid.UUID | None, Exchange]:
    ids = [row.exchange_id for row in additions if row.exchange_id]
    if not ids:
        return {}
    rows = memory.in_spaces(Exchange.objects.findable().filter(id__in=ids), spaces)
    return {row.id: row for row in rows.select_related("space")}


def _documents(
    additions: Iterable[Addition], spaces: memory.SpaceIds, *, person_id: uuid.UUID, is_administrator: bool
) -> Mapping[uuid.UUID | None, DocumentRow]:
    ids = [row.document_id for row in additions if row.document_id]
    if not ids:
        return {}
    documents = memory.active_documents(spaces).filter(id__in=ids).select_related("space", "owner")
    return {
        status.id: document_row(status, person_id=person_id, is_administrator=is_administrator)
        for status in document_statuses(documents)
    }


def _note_row(addition: Addition, exchanges: Sequence[Exchange]) -> AdditionRow:
    space = exchanges[0].space
    is_private = space.kind == Space.Kind.PERSONAL
    title = _("Saved in %(space)s") % {"space": space.display_name}
    parts = [NotePart(row.user_message, row.get_absolute_url()) for row in exchanges[:_MAX_SHOWN]]
    return AdditionRow(
        command="/vadd",
        person_name=addition.person.name,
        added_at=addition.added_at,
        title=_("Saved in your personal space") if is_private else title,
        parts=parts,
        chips=(),
        more=_("and %(count)s more") % {"count": format_number(len(exchanges) - _MAX_SHOWN)}
        if len(exchanges) > _MAX_SHOWN
        else "",
        is_private=is_private,
    )


def _files_row(addition: Addition, documents: Sequence[DocumentRow]) -> AdditionRow:
    title = ngettext("%(count)s file added", "%(count)s files added", len(documents))
    more = _("and %(count)s more, on the page Documents") % {"count": format_number(len(documents) - _MAX_SHOWN)}
    return AdditionRow(
        command="/vdoc",
        person_name=addition.person.name,
        added_at=addition.added_at,
        title=title % {"count": format_number(len(documents))},
        parts=(),
        chips=[UploadChip(row.name, row, is_kept=True) for row in documents[:_MAX_SHOWN]],
        more=more if len(documents) > _MAX_SHOWN else "",
        is_private=all(row.space_kind == Space.Kind.PERSONAL for row in documents),
    )
