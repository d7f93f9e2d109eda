"""Conversations that programs bring along whole: found again among the threads, gone on with, or begun.

Cato's thread is the truth. What a program sends is held against what it said there before, to see which message is new:
one more at the end, another in the place of an earlier one, or the same once more.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import Refused
from chat.models import Session, Thread, Turn
from chat.services.asking import Asked, ask, checked_message, retry
from chat.services.branching import Switched, answer_again, edit
from chat.services.organising import set_model
from chat.services.remembering import set_remembered
from memory import spaces
from memory.shown import number
from memory.text import clean_text, content_hash, excerpt

# So many threads that began with the same words are held against a conversation, the latest first.
_MOST_ALIKE = 20
_UNANSWERED = (Turn.State.FAILED, Turn.State.INTERRUPTED, Turn.State.STOPPED)


class StillAnswering(Refused):
    """The message cannot take the place of one whose answer is being written."""


class NotTheOwner(Refused):
    """Only a thread's owner may decide this."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message of an earlier exchange, and what was answered."""

    message: str
    answer: str


@dataclass(frozen=True, slots=True)
class Brought:
    """A conversation as a program has it: what it tells the model to be, what was said so far, and what is said now."""

    message: str
    earlier: tuple[Said, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a program wants of the thread. `model`: "" is the configured one, None whichever it has; `is_remembered`:
    None leaves that as it is."""

    model: str | None = None
    is_remembered: bool | None = None


@transaction.atomic
def take_part(
    person_id: uuid.UUID,
    brought: Brought,
    *,
    client_key: uuid.UUID,
    thread: Thread | None = None,
    wishes: Wishes = Wishes(),
    images: Sequence[uuid.UUID] = (),
) -> Switched:
    """Say what is new of `brought` in `thread` (one that this person reads), or in the thread it is found to be.

    Where it is none of theirs, or tells it otherwise, a thread begins with the earlier exchanges in it. The same key
    again gives the same turn; one without an answer is tried once more. Raises Refused: StillAnswering, NotTheOwner.
    """
    message, instructions = checked_message(brought.message), _checked_instructions(brought.instructions)
    brought = replace(brought, message=message, instructions=instructions)
    # What one person's programs send is taken one after the other: there may be no thread yet whose row could be locked.
    person = get_user_model().objects.select_for_update(no_key=True).get(id=person_id)
    again = Turn.objects.filter(author_id=person_id, client_key=client_key, thread__deleted_at=None).first()
    if again is not None:
        return _once_more(again)
    is_named = thread is not None
    thread = thread or _found_again(person_id, brought)
    if thread is None:
        thread = _begun(person_id, brought, wishes, model=person.default_model)
    else:
        _set_up(thread, person_id, wishes, instructions)
    place = _place_of(thread, person_id, brought, is_named=is_named)
    if place is None:
        asked = ask(thread, author_id=person_id, message=message, client_key=client_key, images=images)
        switched = Switched(asked)
    elif not _is_same(place.message, message):
        _refuse_while_busy(thread)
        switched = edit(place, author_id=person_id, message=message, client_key=client_key)
    elif place.is_active or place.state == Turn.State.QUEUED or (place.state in _UNANSWERED and not place.answer):
        switched = _once_more(place)
    else:
        _refuse_while_busy(thread)
        switched = answer_again(place, client_key=client_key)
    Turn.objects.filter(id=switched.asked.turn.id).update(by_program=True)
    return switched


def _found_again(person_id: uuid.UUID, brought: Brought) -> Thread | None:
    """The person's latest thread that began with the same words and in which all the rest was said too.

    What has no earlier exchange may as well be new: it is found again only while it is all that was said there, in the
    same sitting and with the same instructions.
    """
    opening = _hash_of_opening(brought)
    alike = Thread.objects.filter(owner_id=person_id, opening=opening, deleted_at=None).order_by("-spoken_at")
    shorter = None
    for thread in alike[:_MOST_ALIKE]:
        view = _view(thread, person_id)
        if not _agree(brought.earlier, view):
            continue
        if not brought.earlier:
            rest = timedelta(hours=settings.CATO.chat.session_idle_hours)
            is_alone = thread.turns.standing().count() == 1 and len(view) == 1
            is_fresh = timezone.now() - thread.spoken_at < rest and thread.instructions == brought.instructions
            if is_alone and is_fresh and _is_same(view[0].message, brought.message):
                return thread
        elif len(view) == len(brought.earlier):
            return thread
        else:
            shorter = shorter or thread
    return shorter


def _place_of(thread: Thread, person_id: uuid.UUID, brought: Brought, *, is_named: bool) -> Turn | None:
    """The turn whose place the new message takes; None where it goes to the end.

    A program that names its thread may send its new message alone. What others said after that place, or the person
    elsewhere, the program does not know: it is not pushed aside.
    """
    view = _view(thread, person_id)
    known = len(brought.earlier)
    if (is_named and not known) or known >= len(view) or not _agree(brought.earlier, view):
        return None
    place = view[known]
    later = thread.turns.standing().filter(position__gt=place.position)
    return None if later.exclude(author_id=person_id, by_program=True).exists() else place


def _view(thread: Thread, person_id: uuid.UUID) -> list[Turn]:
    """What this person's programs know of the thread: what they said there themselves."""
    return list(thread.turns.standing().filter(author_id=person_id, by_program=True))


def _agree(earlier: Sequence[Said], view: Sequence[Turn]) -> bool:
    """Whether all of `earlier` was said, in its order from the beginning.

    A program that stopped listening has the beginning of an answer only; of one that is still written, any part.
    """
    return len(earlier) <= len(view) and all(
        _is_same(said.message, turn.message) and (turn.is_active or _plain(turn.answer).startswith(_plain(said.answer)))
        for said, turn in zip(earlier, view, strict=False)
    )


def _begun(person_id: uuid.UUID, brought: Brought, wishes: Wishes, *, model: str) -> Thread:
    """A thread of the person's own with the earlier exchanges in it. These go into prompts and are not remembered: where
    they were said, they were; and what was forgotten there does not come back this way."""
    now = timezone.now()
    thread = Thread.objects.create(
        owner_id=person_id,
        space=spaces.own(person_id),
        title=excerpt(_opening_of(brought), 80),
        model=model if wishes.model is None else wishes.model,
        is_remembered=wishes.is_remembered is not False,
        instructions=brought.instructions,
        opening=_hash_of_opening(brought),
        spoken_at=now,
    )
    if not brought.earlier:
        return thread
    session = Session.objects.create(thread=thread, started_by_id=person_id, started_at=now)
    turns: list[Turn] = []
    for position, said in enumerate(brought.earlier):
        turns.append(
            Turn(
                thread=thread,
                session=session,
                parent=turns[-1] if turns else None,
                position=position,
                author_id=person_id,
                client_key=uuid.uuid4(),
                by_program=True,
                message=clean_text(said.message).strip(),
                answer=clean_text(said.answer).strip(),
                state=Turn.State.COMPLETE,
                completed_at=now,
            )
        )
    Turn.objects.bulk_create(turns)
    thread.head = turns[-1]
    thread.save(update_fields=["head"])
    return thread


def _set_up(thread: Thread, person_id: uuid.UUID, wishes: Wishes, instructions: str) -> None:
    """Have the thread be as the program wants it. In somebody else's thread its instructions are left out."""
    is_owner = thread.owner_id == person_id
    if wishes.is_remembered is not None and wishes.is_remembered != thread.is_remembered:
        if not is_owner:
            raise NotTheOwner(_("Only who began this thread decides whether it is remembered."))
        set_remembered(thread, wishes.is_remembered)
    if wishes.model is not None and wishes.model != thread.model:
        set_model(thread, wishes.model)
    if is_owner and instructions and instructions != thread.instructions:
        Thread.objects.filter(id=thread.id).update(instructions=instructions)


def _once_more(turn: Turn) -> Switched:
    """The same turn; where it has no answer and none is written, that is tried again."""
    if turn.state in _UNANSWERED and not turn.answer and turn.stands:
        _refuse_while_busy(turn.thread)
        return Switched(Asked(retry(turn), is_new=True))
    return Switched(Asked(turn, is_new=False))


def _refuse_while_busy(thread: Thread) -> None:
    if thread.turns.filter(state__in=[*Turn.ACTIVE, Turn.State.QUEUED]).exists():
        raise StillAnswering(_("An answer is being written in this thread. Stop it or wait until it is done."))


def _checked_instructions(text: str) -> str:
    text = clean_text(text).strip()
    most = settings.CATO.chat.max_message_chars
    if len(text) > most:
        sentence = _("The system messages have %(count)s characters; at most %(most)s fit.")
        raise Refused(sentence % {"count": number(len(text)), "most": number(most)})
    return text


def _hash_of_opening(brought: Brought) -> str:
    return content_hash(_plain(_opening_of(brought)))


def _opening_of(brought: Brought) -> str:
    return brought.earlier[0].message if brought.earlier else brought.message


def _is_same(one: str, other: str) -> bool:
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    """What programs change on the way left out: white space at the ends and its kinds."""
    return " ".join(clean_text(text).split())
