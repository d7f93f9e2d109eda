"""Post messages, retry and resume answers, and start queued turns. Turns are committed before any model is called."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, Max, OuterRef
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.errors import ConflictError, InvalidMessageError
from chat.images import claim_images
from chat.models import Image, Thread, ThreadSession, Turn
from chat.realtime.notifications import notify_thread_changed
from chat.threads.lifecycle import set_recall_filter
from chat.threads.locks import ensure_not_answering, lock_person, lock_thread
from chat.threads.read_markers import ensure_marker
from chat.turns.stopping import HEARTBEAT_TIMEOUT
from memory import api as memory
from memory.api import NO_FILTER, RecallFilter, Space, clean_text, excerpt, format_number


@dataclass(frozen=True, slots=True)
class PostedTurn:
    """The turn of a message; `is_new` is False if the same client key had already created it."""

    turn: Turn
    is_new: bool


@dataclass(frozen=True, slots=True)
class ApiOrigin:
    """The API token with which a turn was posted, and the requested model, if any."""

    api_token_id: uuid.UUID
    requested_model: str = ""


def validate_message(text: str) -> str:
    """Return the cleaned message. Raises InvalidMessageError if it is empty or too long."""
    text = clean_text(text).strip()
    if not text:
        raise InvalidMessageError(_("Write something first; the message is empty."))
    limit = settings.CATO.chat.max_message_chars
    if len(text) > limit:
        sentence = _("Message too long: %(count)s of at most %(most)s characters. Shorten or split it.")
        raise InvalidMessageError(sentence % {"count": format_number(len(text)), "most": format_number(limit)})
    return text


@transaction.atomic
def create_thread_with_message(
    person_id: uuid.UUID,
    *,
    message: str,
    client_key: uuid.UUID,
    recall_filter: RecallFilter = NO_FILTER,
    is_remembered: bool = True,
    images: Sequence[uuid.UUID] = (),
    space: Space | None = None,
    origin: ApiOrigin | None = None,
) -> PostedTurn:
    """Create a thread with its first message in `space`, which this person can read; None: the personal space.

    Idempotent by `client_key`. Raises InvalidMessageError.
    """
    message = validate_message(message)
    # Concurrent copies of a message wait for each other here: there is no thread yet whose row could be locked.
    person = lock_person(person_id)
    existing = Turn.objects.filter(author_id=person_id, client_key=client_key, position=0).first()
    if existing is not None:
        return PostedTurn(existing, is_new=False)
    thread = Thread.objects.create(
        owner_id=person_id,
        space=space or memory.personal_space(person_id),
        title=excerpt(message, 80),
        model=person.default_model,
        is_remembered=is_remembered,
        last_message_at=timezone.now(),
    )
    if not recall_filter.is_empty:
        set_recall_filter(thread, recall_filter)
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
    """Post a message to the thread; idempotent by `client_key`. Raises InvalidMessageError.

    It is queued while the thread is busy, or while its author has `chat.concurrent_answers` answers in progress.
    """
    message = validate_message(message)
    lock_person(author_id)
    thread = lock_thread(thread.id)
    existing = thread.turns.filter(client_key=client_key).first()
    if existing is not None:
        return PostedTurn(existing, is_new=False)
    is_queued = thread.is_busy() or not has_free_answer(author_id)
    turn = create_turn(
        thread,
        parent_id=thread.head_id,
        author_id=author_id,
        client_key=client_key,
        message=message,
        state=Turn.State.QUEUED if is_queued else Turn.State.RECALLING,
        images=claim_images(images, owner_id=author_id),
        origin=origin,
    )
    return PostedTurn(turn, is_new=True)


def create_turn(
    thread: Thread,
    *,
    parent_id: uuid.UUID | None,
    author_id: uuid.UUID,
    client_key: uuid.UUID,
    message: str,
    state: Turn.State,
    images: Iterable[Image],
    origin: ApiOrigin | None,
) -> Turn:
    """Create a turn as the head of the thread, whose row is locked, and mark the thread as read for its author."""
    now = timezone.now()
    last = thread.turns.aggregate(last=Max("position"))["last"]
    turn = Turn.objects.create(
        thread=thread,
        session=_current_session(thread, author_id),
        parent_id=parent_id,
        position=0 if last is None else last + 1,
        author_id=author_id,
        client_key=client_key,
        message=message,
        state=state,
        attempt=1,
        heartbeat_at=now,
        **(asdict(origin) if origin else {}),
    )
    turn.images.set(images)
    Thread.objects.filter(id=thread.id).update(head=turn, last_message_at=now, changed_at=now)
    ensure_marker(thread, author_id)
    notify_thread_changed(thread.id)
    return turn


def retry_turn(turn: Turn) -> Turn:
    """Restart a failed, interrupted or stopped answer from the beginning. Raises ConflictError."""
    return _restart(turn, lambda turn: turn.can_retry, answer="")


def resume_turn(turn: Turn) -> Turn:
    """Continue a failed, interrupted, stopped or cut off answer from its partial text. Raises ConflictError."""
    return _restart(turn, lambda turn: turn.can_resume, answer=None)


@transaction.atomic
def start_next_queued(thread_id: uuid.UUID) -> Turn | None:
    """Start the next queued turn of the thread and return it.

    Return None if no turn is queued, an answer is running in the thread, or the author has no free answer.
    """
    queued = Turn.objects.filter(thread_id=thread_id, state=Turn.State.QUEUED).order_by("position")
    turn = queued.first()
    if turn is None:
        return None
    # Locks are always taken in this order: person, thread.
    lock_person(turn.author_id)
    thread = lock_thread(thread_id)
    turn = queued.filter(id=turn.id).first()
    if turn is None or thread.is_answering() or not has_free_answer(turn.author_id):
        return None
    turn.state, turn.revision, turn.heartbeat_at = Turn.State.RECALLING, turn.revision + 1, timezone.now()
    turn.save(update_fields=["state", "revision", "heartbeat_at"])
    notify_thread_changed(thread_id)
    return turn


def start_queued_after_answer(thread_id: uuid.UUID, author_id: uuid.UUID) -> list[uuid.UUID]:
    """Start the turns that waited for an answer: the next one of its thread, then others of its author; return their ids."""
    other_threads = Turn.objects.filter(author_id=author_id, state=Turn.State.QUEUED).exclude(thread_id=thread_id)
    queued = [thread_id, *other_threads.order_by("created_at").values_list("thread_id", flat=True)]
    return [turn.id for thread_id in dict.fromkeys(queued) if (turn := start_next_queued(thread_id)) is not None]


def start_all_queued() -> list[uuid.UUID]:
    """Start the next queued turn of each thread without a running answer; return their ids."""
    running = Turn.objects.filter(thread=OuterRef("thread"), state__in=Turn.RUNNING_STATES)
    idle = Turn.objects.filter(~Exists(running), state=Turn.State.QUEUED).values_list("thread_id", flat=True).distinct()
    return [turn.id for thread_id in idle if (turn := start_next_queued(thread_id)) is not None]


@transaction.atomic
def _restart(turn: Turn, is_allowed: Callable[[Turn], bool], *, answer: str | None) -> Turn:
    lock_person(turn.author_id)
    thread = lock_thread(turn.thread_id)
    ensure_not_answering(thread)
    ensure_free_answer(turn.author_id)
    current = thread.turns.filter(id=turn.id).first()
    if current is None or not is_allowed(current):
        raise ConflictError(_("This answer is already complete or in progress."))
    changes = {"answer": answer, "reasoning": ""} if answer is not None else {}
    thread.turns.filter(id=turn.id).update(
        state=Turn.State.RECALLING,
        attempt=F("attempt") + 1,
        revision=F("revision") + 1,
        stop_requested=False,
        heartbeat_at=timezone.now(),
        error="",
        error_code="",
        completed_at=None,
        **changes,
    )
    turn.refresh_from_db()
    notify_thread_changed(turn.thread_id)
    return turn


def has_free_answer(person_id: uuid.UUID) -> bool:
    """Return whether this person, whose row is locked, can start another answer."""
    # Answers of a dead process do not count; the sweep interrupts them.
    alive_since = timezone.now() - HEARTBEAT_TIMEOUT
    running = Turn.objects.filter(author_id=person_id, state__in=Turn.RUNNING_STATES, heartbeat_at__gte=alive_since)
    return running.count() < settings.CATO.chat.concurrent_answers


def ensure_free_answer(person_id: uuid.UUID) -> None:
    """Raise ConflictError if this person, whose row is locked, can start no other answer."""
    if not has_free_answer(person_id):
        sentence = ngettext(
            "An answer of yours is in progress. Wait until it ends, or stop it.",
            "%(count)s answers of yours are in progress. Wait until one ends, or stop one.",
            settings.CATO.chat.concurrent_answers,
        )
        raise ConflictError(sentence % {"count": format_number(settings.CATO.chat.concurrent_answers)})


def _current_session(thread: Thread, person_id: uuid.UUID) -> ThreadSession:
    """Return the thread's last session, or a new one after `session_idle_hours` without a message."""
    now = timezone.now()
    last = thread.sessions.order_by("-seq").first()
    max_idle = timedelta(hours=settings.CATO.chat.session_idle_hours)
    if last is not None and now - max(thread.last_message_at, last.started_at) < max_idle:
        return last
    seq = 0 if last is None else last.seq + 1
    return ThreadSession.objects.create(thread=thread, seq=seq, started_by_id=person_id, started_at=now)
