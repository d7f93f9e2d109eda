"""Suggest, keep, add, change and delete instructions; callers have checked who may."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import ConflictError, InvalidMessageError
from chat.models import Instruction, Thread, Turn
from chat.threads.locks import lock_thread
from memory import api as memory
from memory.api import DetectedInstruction, Exchange, Space, clean_text, format_number, without_bidi_controls

MAX_INSTRUCTIONS = 12  # of a person, and of a space
State = Instruction.State
# States that count towards the limit. A suggestion does not apply and does not count.
_APPLYING = (State.RECOGNISED, State.KEPT)


def can_be_detected(turn: Turn) -> bool:
    """Return whether the message of this turn (loaded with its author and thread) can become an instruction.

    Its author typed it in their own thread, which is saved to memory, and has not switched detection off.
    """
    is_own = turn.author_id == turn.thread.owner_id
    return bool(turn.is_typed and is_own and turn.thread.is_remembered and turn.author.detects_instructions)


def suggest(turn: Turn, detected: DetectedInstruction) -> bool:
    """Store what was detected in the message of this turn for its author; return False if it is not new.

    It applies at once if it is certain and the author has fewer than twelve. Otherwise it waits to be kept.
    """
    thread = turn.thread
    space = thread.space if thread.space.owner_id == turn.author_id else memory.personal_space(turn.author_id)
    text = _clean(detected.text)
    in_space = Q(space=space) & (Q(state__in=_APPLYING) | Q(text=text))
    # That of the same message can have been kept for another space before the message was tried again.
    rows = Instruction.objects.filter(Q(turn=turn) | in_space)
    known = list(rows.values_list("state", "turn_id", "text"))
    if any(turn_id == turn.id or known_text == text for _state, turn_id, known_text in known):
        return False
    count = sum(state in _APPLYING for state, _turn_id, _text in known)
    is_applied = detected.is_certain and count < MAX_INSTRUCTIONS
    Instruction.objects.create(
        space=space,
        author_id=turn.author_id,
        turn=turn,
        text=text,
        state=State.RECOGNISED if is_applied else State.SUGGESTED,
    )
    if not is_applied:
        suggested = Instruction.objects.filter(space=space, state=State.SUGGESTED).order_by("-created_at", "-id")
        Instruction.objects.filter(id__in=list(suggested.values_list("id", flat=True)[MAX_INSTRUCTIONS:])).delete()
    return True


@transaction.atomic
def add(space: Space, text: str, *, by: uuid.UUID) -> Instruction:
    """Add an instruction that a person typed. Raises InvalidInputError, ConflictError at the limit."""
    memory.ensure_open(space)
    text = _validate(text)
    _ensure_room(space.id)
    return Instruction.objects.create(space=space, author_id=by, text=text, state=State.KEPT)


@transaction.atomic
def keep(instruction: Instruction, *, space: Space) -> None:
    """Keep a suggested instruction for `space`.

    Raises ConflictError at the limit of that space, or if the instruction is kept or dismissed already, and
    InvalidInputError for an archived project.
    """
    memory.ensure_open(space)
    _ensure_room(space.id, besides=instruction.id)
    undecided = Instruction.objects.filter(id=instruction.id, state__in=(State.SUGGESTED, State.RECOGNISED))
    if not undecided.update(state=State.KEPT, space=space):
        raise ConflictError(_("This instruction was already kept or dismissed. Reload the page."))


def edit(instruction: Instruction, text: str) -> None:
    """Change the text of an instruction. Raises InvalidMessageError."""
    Instruction.objects.filter(id=instruction.id).exclude(state=State.DISMISSED).update(
        text=_validate(text), edited_at=timezone.now()
    )


def set_on(instruction: Instruction, is_on: bool) -> None:
    """Switch an instruction on or off."""
    off_at: datetime | None = None if is_on else timezone.now()
    Instruction.objects.filter(id=instruction.id).update(off_at=off_at)


@transaction.atomic
def delete(instruction: Instruction) -> None:
    """Delete an instruction, or dismiss a suggested one: its message is an ordinary one from now on."""
    Instruction.objects.filter(id=instruction.id, turn=None).delete()
    Instruction.objects.filter(id=instruction.id).update(state=State.DISMISSED, text="")


def delete_forgotten() -> int:
    """Delete the rows of instructions whose messages were forgotten, which no query returns; return their number."""
    forgotten = Exchange.objects.filter(id=OuterRef("turn__exchange_id")).exclude(forgotten_at=None)
    return Instruction.objects.filter(Exists(forgotten)).delete()[0]


def delete_of_person(person_id: uuid.UUID) -> None:
    """Delete the instructions in the personal space of a person whose account is deleted."""
    Instruction.objects.filter(space__owner_id=person_id).delete()


@transaction.atomic
def set_on_in_thread(thread: Thread, instruction_id: uuid.UUID, is_on: bool) -> None:
    """Switch an instruction on or off for the next answers of one thread."""
    locked = lock_thread(thread.id)
    others = [id for id in locked.disabled_instructions if id != str(instruction_id)]
    locked.disabled_instructions = others if is_on else [*others, str(instruction_id)]
    locked.save(update_fields=["disabled_instructions"])


def _ensure_room(space_id: uuid.UUID, besides: uuid.UUID | None = None) -> None:
    """Raise ConflictError if the space has its twelve instructions; lock its row, so that they are counted correctly."""
    Space.objects.select_for_update(no_key=True).get(id=space_id)
    others = Q() if besides is None else ~Q(id=besides)
    rows = Instruction.objects.present().filter(others, space_id=space_id, state__in=_APPLYING)
    if rows.count() >= MAX_INSTRUCTIONS:
        sentence = _("Limit of %(count)s instructions reached. Delete one first.")
        raise ConflictError(sentence % {"count": format_number(MAX_INSTRUCTIONS)})


def _validate(text: str) -> str:
    text = _clean(text)
    if not text:
        raise InvalidMessageError(_("Write an instruction; it is empty."))
    if len(text) > Instruction.MAX_LENGTH:
        sentence = _("Instruction too long: %(count)s of at most %(most)s characters. Shorten it.")
        counts = {"count": format_number(len(text)), "most": format_number(Instruction.MAX_LENGTH)}
        raise InvalidMessageError(sentence % counts)
    return text


def _clean(text: str) -> str:
    """Return the text on one line, without characters that reverse the text around it."""
    return " ".join(without_bidi_controls(clean_text(text)).split())
