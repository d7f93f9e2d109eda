"""Asking: a message becomes a turn, once, and is committed before any model is called."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.errors import ConflictError, InvalidMessageError
from chat.images import claim_images
from chat.models import Session, Thread, Turn
from chat.realtime.notifications import notify_thread_changed
from chat.threads.lifecycle import set_scope
from chat.threads.locks import ensure_not_answering, lock_person, lock_thread
from chat.threads.read_markers import ensure_marker
from chat.turns.stopping import SILENCE
from memory.models import Space
from memory.retrieval.recall_filter import NO_FILTER, RecallFilter
from memory.spaces import access
from memory.text import clean_text, excerpt
from memory.utils.formatting import format_number


@dataclass(frozen=True, slots=True)
class PostedTurn:
    """The turn a message became; `is_new` is false where the same message came again."""

    turn: Turn
    is_new: bool


@dataclass(frozen=True, slots=True)
class ApiOrigin:
    """Where a turn posted through the API came from: the token it was posted with, and the model asked for, if any."""

    api_token_id: uuid.UUID
    requested_model: str = ""


def validate_message(text: str) -> str:
    """The message as it is kept. Raises InvalidMessageError for an empty or too long one."""
    text = clean_text(text).strip()
    if not text:
        raise InvalidMessageError(_("Write something first; the message is empty."))
    most = settings.CATO.chat.max_message_chars
    if len(text) > most:
        sentence = _("Message too long: %(count)s of at most %(most)s characters. Shorten or split it.")
        raise InvalidMessageError(sentence % {"count": format_number(len(text)), "most": format_number(most)})
    return text


@transaction.atomic
def create_thread_with_message(
    person_id: uuid.UUID,
    *,
    message: str,
    client_key: uuid.UUID,
    scope: RecallFilter = NO_FILTER,
    is_remembered: bool = True,
    images: Sequence[uuid.UUID] = (),
    space: Space | None = None,
    origin: ApiOrigin | None = None,
) -> PostedTurn:
    """Begin a thread with its first message, in `space` (one that this person reads; None: their own).

    The same key again gives the same thread.
    """
    message = validate_message(message)
    # The same message twice at once waits here for itself: there is no thread yet whose row could be locked.
    person = lock_person(person_id)
    again = Turn.objects.filter(author_id=person_id, client_key=client_key, position=0).first()
    if again is not None:
        return PostedTurn(again, is_new=False)
    thread = Thread.objects.create(
        owner_id=person_id,
        space=space or access.personal_space(person_id),
        title=excerpt(message, 80),
        model=person.default_model,
        is_remembered=is_remembered,
        spoken_at=timezone.now(),
    )
    if not scope.is_everything:
        set_scope(thread, scope)
    return post_message(
        thread, author_id=person_id, message=message, client_key=client_key, images=images, origin=origin
    )


@transaction.atomic
def post_message(
    thread: Thread,
    *,
    author_id: uuid.UUID,
    message: str,
    client_key: uuid.UUID,
    images: Sequence[uuid.UUID] = (),
    origin: ApiOrigin | None = None,
) -> PostedTurn:
    """Post a message to the thread. Raises InvalidMessageError.

    It is queued while another answer is being written in the thread, or while its author has as many answers in
    progress as one person may have at once.
    """
    message = validate_message(message)
    lock_person(author_id)
    thread = lock_thread(thread.id)
    again = thread.turns.filter(client_key=client_key).first()
    if again is not None:
        return PostedTurn(again, is_new=False)
    pictures = claim_images(images, owner_id=author_id)
    now = timezone.now()
    is_busy = thread.turns.filter(state__in=[*Turn.ACTIVE, Turn.State.QUEUED]).exists()
    is_queued = is_busy or not has_free_answer(author_id)
    last = thread.turns.aggregate(last=Max("position"))["last"]
    turn = Turn.objects.create(
        thread=thread,
        session=current_session(thread, author_id),
        parent_id=thread.head_id,
        position=0 if last is None else last + 1,
        author_id=author_id,
        client_key=client_key,
        message=message,
        state=Turn.State.QUEUED if is_queued else Turn.State.RECALLING,
        attempt=1,
        heartbeat_at=now,
        **fields_of(origin),
    )
    turn.images.set(pictures)
    Thread.objects.filter(id=thread.id).update(head=turn, spoken_at=now, changed_at=now)
    ensure_marker(thread, author_id)
    notify_thread_changed(thread.id)
    return PostedTurn(turn, is_new=True)


def retry(turn: Turn) -> Turn:
    """Have a failed or unanswered turn answered again from the start. Raises ConflictError where it cannot be."""
    return _restart(turn, [Turn.State.FAILED, Turn.State.INTERRUPTED, Turn.State.STOPPED], answer="")


def resume(turn: Turn) -> Turn:
    """Go on with a stopped, interrupted, failed or cut off answer from what it said so far. Raises ConflictError."""
    cut_off = [Turn.State.COMPLETE] if turn.is_cut_off else []
    return _restart(turn, [Turn.State.FAILED, Turn.State.INTERRUPTED, Turn.State.STOPPED, *cut_off], answer=None)


@transaction.atomic
def start_next_queued(thread_id: uuid.UUID) -> Turn | None:
    """Start the next queued turn of the thread and return it.

    None if the thread has none, an answer is being written in it, or the turn's author has no free answer.
    """
    queued = Turn.objects.filter(thread_id=thread_id, state=Turn.State.QUEUED).order_by("position")
    turn = queued.first()
    if turn is None:
        return None
    # The order of the locks is the same everywhere: first the person, then the thread.
    lock_person(turn.author_id)
    thread = lock_thread(thread_id)
    turn = queued.filter(id=turn.id).first()
    if turn is None or thread.is_answering() or not has_free_answer(turn.author_id):
        return None
    turn.state, turn.revision, turn.heartbeat_at = Turn.State.RECALLING, turn.revision + 1, timezone.now()
    turn.save(update_fields=["state", "revision", "heartbeat_at"])
    notify_thread_changed(thread_id)
    return turn


def start_after(thread_id: uuid.UUID, author_id: uuid.UUID) -> list[uuid.UUID]:
    """Start what waited for an answer that just ended: the next turn of its thread, and others of its author.

    Returns the ids of the turns that were started.
    """
    elsewhere = Turn.objects.filter(author_id=author_id, state=Turn.State.QUEUED).exclude(thread_id=thread_id)
    waiting = [thread_id, *elsewhere.order_by("created_at").values_list("thread_id", flat=True)]
    return [turn.id for thread_id in dict.fromkeys(waiting) if (turn := start_next_queued(thread_id)) is not None]


def start_all_queued() -> list[uuid.UUID]:
    """Let queued turns begin wherever nothing is being answered; returns their ids."""
    active = Turn.objects.filter(thread=OuterRef("thread"), state__in=Turn.ACTIVE)
    idle = Turn.objects.filter(~Exists(active), state=Turn.State.QUEUED).values_list("thread_id", flat=True).distinct()
    return [turn.id for thread_id in idle if (turn := start_next_queued(thread_id)) is not None]


@transaction.atomic
def _restart(turn: Turn, states: list[str], *, answer: str | None) -> Turn:
    lock_person(turn.author_id)
    thread = lock_thread(turn.thread_id)
    ensure_not_answering(thread)
    ensure_free_answer(turn.author_id)
    changes = {"answer": answer, "reasoning": ""} if answer is not None else {}
    begun = thread.turns.filter(id=turn.id, state__in=states).update(
        state=Turn.State.RECALLING,
        attempt=F("attempt") + 1,
        revision=F("revision") + 1,
        stop_asked=False,
        heartbeat_at=timezone.now(),
        error="",
        error_code="",
        completed_at=None,
        **changes,
    )
    if not begun:
        raise ConflictError(_("This answer is already complete or in progress."))
    turn.refresh_from_db()
    notify_thread_changed(turn.thread_id)
    return turn


def has_free_answer(person_id: uuid.UUID) -> bool:
    """Return whether this person, whose row is locked, may have one more answer in progress."""
    # Those whose process died do not count; they are marked as interrupted soon.
    alive = Turn.objects.filter(author_id=person_id, state__in=Turn.ACTIVE, heartbeat_at__gte=timezone.now() - SILENCE)
    return alive.count() < settings.CATO.chat.concurrent_answers


def ensure_free_answer(person_id: uuid.UUID) -> None:
    """Raise ConflictError if this person, whose row is locked, has as many answers in progress as one person may."""
    if not has_free_answer(person_id):
        sentence = ngettext(
            "An answer of yours is in progress. Wait until it ends, or stop it.",
            "%(count)s answers of yours are in progress. Wait until one ends, or stop one.",
            settings.CATO.chat.concurrent_answers,
        )
        raise ConflictError(sentence % {"count": format_number(settings.CATO.chat.concurrent_answers)})


def fields_of(origin: ApiOrigin | None) -> dict[str, Any]:
    """The fields of a turn that say where it came from."""
    return asdict(origin) if origin else {}


def current_session(thread: Thread, person_id: uuid.UUID) -> Session:
    """The running session, or the next one where the thread rested for `session_idle_hours`."""
    now = timezone.now()
    last = thread.sessions.order_by("-seq").first()
    rest = timedelta(hours=settings.CATO.chat.session_idle_hours)
    if last is not None and now - max(thread.spoken_at, last.started_at) < rest:
        return last
    seq = 0 if last is None else last.seq + 1
    return Session.objects.create(thread=thread, seq=seq, started_by_id=person_id, started_at=now)
