"""Template rows of instructions: in the margin of a turn, offered to the author of a message, and on pages."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from chat import access
from chat.instructions.applying import AppliedInstruction, count_answers
from chat.models import Instruction, Thread, Turn
from memory import api as memory
from memory.api import Membership, Space, format_list, format_number

State = Instruction.State


@dataclass(frozen=True, slots=True)
class AppliedRow:
    """An instruction that was in the prompt of an answer."""

    text: str
    owner_text: str
    since: datetime
    is_edited: bool
    is_off: bool
    toggle_url: str


@dataclass(frozen=True, slots=True)
class OfferRow:
    """An instruction detected in a message of this person, who decides about it; `space` is where else it can be kept."""

    id: uuid.UUID
    text: str
    applies: bool
    said_at: datetime
    thread_title: str
    thread_url: str
    space_id: uuid.UUID | None
    space_name: str
    url: str


@dataclass(frozen=True, slots=True)
class InstructionRow:
    """An instruction on a page, with where it comes from; the URLs are empty for people who may not change it."""

    id: uuid.UUID
    text: str
    thread_title: str
    author_text: str
    created_at: datetime
    applied_text: str
    off_at: datetime | None
    thread_url: str
    url: str
    edit_url: str
    delete_url: str


@dataclass(frozen=True, slots=True)
class InstructionSection:
    """The instructions of one space."""

    space_id: uuid.UUID
    kind: str
    name: str
    editors_text: str
    rows: Sequence[InstructionRow]


def applied_rows(turn: Turn, known: Mapping[str, AppliedInstruction]) -> list[AppliedRow]:
    """Return the rows of the instructions of a turn (loaded with its thread and space) that are `known`, by their ids."""
    thread = turn.thread
    return [
        AppliedRow(
            text=row.text,
            owner_text=_owner_text(row.space_id, thread),
            since=row.created_at,
            is_edited=row.edited_at is not None and row.edited_at > (turn.completed_at or turn.created_at),
            is_off=id in thread.disabled_instructions,
            toggle_url=reverse("set_thread_instruction", args=[thread.id, row.id]),
        )
        for id in turn.applied_instructions
        if (row := known.get(id)) is not None
    ]


def _owner_text(space_id: uuid.UUID, thread: Thread) -> str:
    if space_id != thread.space_id:
        return str(Space.Kind.TEAM.label)
    return _("For you") if thread.space.owner_id else thread.space.display_name


def offer_of_turn(person_id: uuid.UUID, turn: Turn) -> OfferRow | None:
    """Return the undecided instruction in the message of this turn, if it is this person's."""
    found = _undecided(person_id).filter(turn_id=turn.id).first()
    return None if found is None else _offer_row(person_id, found, turn)


def list_offers(person_id: uuid.UUID) -> list[OfferRow]:
    """Return the undecided instructions of this person, newest first."""
    rows = _undecided(person_id).order_by("-created_at", "-id")
    return [_offer_row(person_id, row, row.turn) for row in rows if row.turn is not None]


def sections(person_id: uuid.UUID) -> list[InstructionSection]:
    """Return the instructions of this person, then those of each space that has any, the team last."""
    spaces = memory.list_readable_spaces(person_id)
    kept = _kept(spaces)
    shown = [space for space in spaces if space.id in kept]
    return _sections(person_id, shown, kept, memory.managed_space_ids(person_id, shown))


def space_section(person_id: uuid.UUID, space: Space) -> tuple[InstructionSection, bool]:
    """Return the kept instructions of a space that this person reads, and whether they manage it."""
    managed = memory.managed_space_ids(person_id, [space])
    (section,) = _sections(person_id, [space], _kept([space]), managed)
    return section, space.id in managed


def _kept(spaces: Iterable[Space]) -> dict[uuid.UUID, list[Instruction]]:
    """Return the kept instructions by space."""
    rows = Instruction.objects.present().filter(space__in=list(spaces), state=State.KEPT)
    kept: dict[uuid.UUID, list[Instruction]] = {}
    for row in rows.select_related("author", "turn__thread"):
        kept.setdefault(row.space_id, []).append(row)
    return kept


def _sections(
    person_id: uuid.UUID, spaces: Sequence[Space], kept: Mapping[uuid.UUID, list[Instruction]], managed: Set[uuid.UUID]
) -> list[InstructionSection]:
    readable = _readable_threads(person_id, chain.from_iterable(kept.values()))
    editors = _editors_texts(person_id, [space for space in spaces if space.owner_id is None])
    sections = []
    for space in spaces:
        rows = kept.get(space.id, [])
        counts = count_answers(space, [row.id for row in rows]) if rows else {}
        section = InstructionSection(
            space_id=space.id,
            kind=space.kind,
            name=_("For you") if space.owner_id else space.display_name,
            editors_text=editors.get(space.id, ""),
            rows=[
                _instruction_row(person_id, row, readable, answers=counts[row.id], is_managed=space.id in managed)
                for row in rows
            ],
        )
        sections.append(section)
    return sections


def _undecided(person_id: uuid.UUID) -> QuerySet[Instruction]:
    rows = Instruction.objects.present().filter(
        space__owner_id=person_id, author_id=person_id, state__in=(State.SUGGESTED, State.RECOGNISED)
    )
    return rows.select_related("turn__thread__space")


def _offer_row(person_id: uuid.UUID, row: Instruction, turn: Turn) -> OfferRow:
    thread = turn.thread
    is_readable = thread.id in _readable_threads(person_id, [row])
    can_keep = is_readable and thread.space.owner_id is None and memory.manages_space(person_id, thread.space)
    return OfferRow(
        id=row.id,
        text=row.text,
        applies=row.state == State.RECOGNISED and row.off_at is None,
        said_at=row.created_at,
        thread_title=thread.title if is_readable else "",
        thread_url=reverse("turn", args=[turn.id]) if is_readable else "",
        space_id=thread.space_id if can_keep else None,
        space_name=thread.space.display_name if can_keep else "",
        url=reverse("change_instruction", args=[row.id]),
    )


def _instruction_row(
    person_id: uuid.UUID, row: Instruction, readable: set[uuid.UUID], *, answers: int, is_managed: bool
) -> InstructionRow:
    has_source = row.turn is not None and row.turn.thread_id in readable
    author = pgettext("author", "you") if row.author_id == person_id else row.author.name
    by = _("by %(name)s") if has_source else _("Written by %(name)s") if row.turn is None else _("Said by %(name)s")
    applied = ngettext("Applied to %(count)s answer", "Applied to %(count)s answers", answers)
    return InstructionRow(
        id=row.id,
        text=row.text,
        thread_title=row.turn.thread.title if row.turn is not None and has_source else "",
        author_text="" if has_source and row.author_id == person_id else by % {"name": author},
        created_at=row.created_at,
        applied_text=applied % {"count": format_number(answers)} if answers else "",
        off_at=row.off_at,
        thread_url=reverse("turn", args=[row.turn_id]) if has_source else "",
        url=reverse("change_instruction", args=[row.id]) if is_managed else "",
        edit_url=reverse("edit_instruction", args=[row.id]) if is_managed else "",
        delete_url=reverse("delete_instruction", args=[row.id]) if is_managed else "",
    )


def _readable_threads(person_id: uuid.UUID, rows: Iterable[Instruction]) -> set[uuid.UUID]:
    """Return the threads of these instructions that this person may read now."""
    ids = {row.turn.thread_id for row in rows if row.turn is not None}
    if not ids:
        return set()
    return set(access.readable_threads(person_id).filter(id__in=ids).values_list("id", flat=True))


def _editors_texts(person_id: uuid.UUID, spaces: Sequence[Space]) -> dict[uuid.UUID, str]:
    """Return e.g. "6 people; you and Aisha can edit" for each of these shared spaces."""
    counts = memory.count_readers(spaces)
    managers = Membership.objects.filter(space__in=spaces, role=Membership.Role.MANAGER, person__is_active=True)
    editors: dict[uuid.UUID, list[Membership]] = {}
    for manager in sorted(
        managers.select_related("person"), key=lambda one: (one.person_id != person_id, str(one.person))
    ):
        editors.setdefault(manager.space_id, []).append(manager)
    return {space.id: _editors_text(person_id, space, counts[space.id], editors.get(space.id, [])) for space in spaces}


def _editors_text(person_id: uuid.UUID, space: Space, count: int, editors: Sequence[Membership]) -> str:
    readers = ngettext("%(count)s person", "%(count)s people", count) % {"count": format_number(count)}
    if space.kind == Space.Kind.TEAM:
        return _("%(readers)s; administrators can edit") % {"readers": readers}
    if not editors:
        return readers
    # Not in the sentence with names: in other languages its verb differs.
    if [editor.person_id for editor in editors] == [person_id]:
        return _("%(readers)s; you can edit") % {"readers": readers}
    names = [_("you") if editor.person_id == person_id else str(editor.person) for editor in editors]
    sentence = ngettext("%(readers)s; %(names)s can edit", "%(readers)s; %(names)s can edit", len(names))
    return sentence % {"readers": readers, "names": format_list(names)}
