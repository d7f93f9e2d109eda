"""Post messages, retry and resume answers, and start queued turns. Turns are committed before any model is called."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.attachments import add_attachments, claim_attachments
from chat.errors import ConflictError, InvalidMessageError
from chat.models import Attachment, Thread, ThreadSession, Turn
from chat.realtime.notifications import notify_link_changed
from chat.threads.locks import ensure_not_answering, lock_person, lock_thread
from chat.threads.read_markers import ensure_marker
from chat.turns.stopping import HEARTBEAT_TIMEOUT
from memory import api as memory
from memory.api import NO_FILTER, RecallFilter, Space, clean_text, excerpt, format_number


@dataclass(frozen=True, slots=True)
class PostedTurn:
    """The turn of a message; `is_new` is False if the same client key had already created it.

    A new turn has its author, its thread with its space, and its session loaded; `attachments` are those of its message;
    `is_only_version`: it is known that no turn has the same parent.
    """

    turn: Turn
    is_new: bool
    attachments: tuple[Attachment, ...] = ()
    is_only_version: bool = False


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
    attachments: Sequence[uuid.UUID] = (),
    space: Space | None = None,
    origin: ApiOrigin | None = None,
    is_typed: bool = False,
) -> PostedTurn:
    """Create a thread with its first message in `space`, which this person can read; None: the personal space.

    `is_typed`: the person typed the message on a page. Idempotent by `client_key`. Raises InvalidMessageError.
    """
    message = validate_message(message)
    # Concurrent copies of a message wait for each other here: there is no thread yet whose row could be locked.
    person = lock_person(person_id)
    own = Turn.objects.filter(author_id=person_id).filter(_is_running() | Q(client_key=client_key, position=0))
    own_turns = list(own.defer("message", "answer", "reasoning"))
    existing = next((turn for turn in own_turns if turn.client_key == client_key and turn.position == 0), None)
    if existing is not None:
        return PostedTurn(existing, is_new=False)
    has_free = len(own_turns) < settings.CATO.chat.concurrent_answers
    now, turn_id = timezone.now(), uuid.uuid4()
    thread = Thread.objects.create(
        owner=person,
        space=space or memory.personal_space(person_id),
        title=excerpt(message, 80),
        model=person.default_model,
        is_remembered=is_remembered,
        recall_filter={} if recall_filter.is_empty else recall_filter.as_json(),
        # The reference to the turn is checked at the commit.
        head_id=turn_id,
        last_message_at=now,
        changed_at=now,
    )
    claimed = claim_attachments(attachments, owner_id=person_id)
    turn = create_turn(
        thread,
        Place(),
        turn_id=turn_id,
        parent_id=None,
        author=person,
        client_key=client_key,
        message=message,
        state=Turn.State.RECALLING if has_free else Turn.State.QUEUED,
        attachments=claimed,
        origin=origin,
        is_typed=is_typed,
    )
    return PostedTurn(turn, is_new=True, attachments=claimed, is_only_version=True)


@transaction.atomic
def post_message(
    thread: Thread,
    *,
    author_id: uuid.UUID,
    message: str,
    client_key: uuid.UUID,
    attachments: Sequence[uuid.UUID] = (),
    origin: ApiOrigin | None = None,
    is_typed: bool = False,
) -> PostedTurn:
    """Post a message to the thread; idempotent by `client_key`. Raises InvalidMessageError.

    `is_typed`: the author typed the message on a page. It is queued while the thread is busy, or while its author has `chat.concurrent_answers` answers in progress.
    """
    message = validate_message(message)
    # Both rows were read when access was checked; here they are locked.
    person = lock_person(author_id)
    thread = lock_thread(thread.id)
    place = find_place(thread, author_id=author_id, client_key=client_key)
    if place.existing_id is not None:
        return PostedTurn(thread.turns.get(id=place.existing_id), is_new=False)
    claimed = claim_attachments(attachments, owner_id=author_id)
    turn = create_turn(
        thread,
        place,
        parent_id=thread.head_id,
        author=person,
        client_key=client_key,
        message=message,
        state=Turn.State.QUEUED if place.is_busy else Turn.State.RECALLING,
        attachments=claimed,
        origin=origin,
        is_typed=is_typed,
    )
    return PostedTurn(turn, is_new=True, attachments=claimed, is_only_version=not place.has_siblings)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a turn of this author would go in a thread.

    `is_busy`: it has to wait for an answer of the thread or of the author. `existing_id` is the turn with the same
    client key, if any. `has_siblings`: the head of the thread has been answered before. `session_id` is None in a
    thread without sessions.
    """

    existing_id: uuid.UUID | None = None
    is_busy: bool = False
    has_siblings: bool = False
    position: int = 0
    session_id: uuid.UUID | None = None
    session_seq: int = -1
    session_started_at: datetime | None = None


def find_place(thread: Thread, *, author_id: uuid.UUID, client_key: uuid.UUID) -> Place:
    """Return the place of a turn in the thread; the rows of thread and author are locked."""
    turns, sessions = thread.turns.order_by("-position"), thread.sessions.order_by("-seq")
    waiting = turns.filter(state__in=[*Turn.RUNNING_STATES, Turn.State.QUEUED])
    row = (
        Thread.objects.filter(id=thread.id)
        .annotate(
            existing_id=Subquery(turns.filter(client_key=client_key).values("id")[:1]),
            is_waiting=Exists(waiting),
            has_siblings=Exists(turns.filter(parent_id=thread.head_id)),
            last_position=Subquery(turns.values("position")[:1]),
            session_id=Subquery(sessions.values("id")[:1]),
            session_seq=Subquery(sessions.values("seq")[:1]),
            session_started_at=Subquery(sessions.values("started_at")[:1]),
            running=Subquery(_running_of(author_id).values("author").annotate(n=Count("id")).values("n")),
        )
        .values()
        .get()
    )
    return Place(
        existing_id=row["existing_id"],
        is_busy=row["is_waiting"] or (row["running"] or 0) >= settings.CATO.chat.concurrent_answers,
        has_siblings=row["has_siblings"],
        position=0 if row["last_position"] is None else row["last_position"] + 1,
        session_id=row["session_id"],
        session_seq=-1 if row["session_seq"] is None else row["session_seq"],
        session_started_at=row["session_started_at"],
    )


def create_turn(
    thread: Thread,
    place: Place,
    *,
    turn_id: uuid.UUID | None = None,
    parent_id: uuid.UUID | None,
    author: Any,
    client_key: uuid.UUID,
    message: str,
    state: Turn.State,
    attachments: Sequence[Attachment],
    origin: ApiOrigin | None,
    is_typed: bool = False,
    written_at: datetime | None = None,
) -> Turn:
    """Create a turn as the head of the thread, whose row is locked, and mark the thread as read for its author.

    A new thread has `turn_id` as its head already. `written_at` is the date of the message; None: now.
    """
    now = timezone.now()
    turn = Turn.objects.create(
        id=turn_id or uuid.uuid4(),
        thread=thread,
        session=_current_session(thread, place, author.id),
        parent_id=parent_id,
        position=place.position,
        author=author,
        client_key=client_key,
        message=message,
        state=state,
        attempt=1,
        heartbeat_at=now,
        is_typed=is_typed,
        **(asdict(origin) if origin else {}),
    )
    if written_at is not None:
        # `auto_now_add` sets it on saving.
        turn.created_at = written_at
        Turn.objects.filter(id=turn.id).update(created_at=written_at)
    add_attachments(turn, attachments)
    if thread.head_id != turn.id:
        Thread.objects.filter(id=thread.id).update(head=turn, last_message_at=now, changed_at=now)
    ensure_marker(thread, author.id)
    notify_link_changed(thread, is_answering=True if state == Turn.State.RECALLING else None, is_latest=True)
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
    notify_link_changed(thread, is_answering=True)
    return turn


@dataclass(frozen=True, slots=True)
class Successors:
    """The turns after an answer that has ended: the one that runs in its thread already, and the threads with waiting ones.

    `running` is the running one with `id`, `author_id` and the name of its author.
    """

    running: Turn | None
    queued_thread_ids: tuple[uuid.UUID, ...]


def find_successors(thread_id: uuid.UUID, author_id: uuid.UUID) -> Successors:
    """Return what follows an answer: turns of its thread, then waiting ones of its author in other threads."""
    of_thread = Q(thread_id=thread_id, state__in=[*Turn.RUNNING_STATES, Turn.State.QUEUED])
    rows = list(
        Turn.objects.filter(of_thread | Q(author_id=author_id, state=Turn.State.QUEUED))
        .select_related("author")
        .only("id", "thread_id", "state", "author__name")
        .order_by("created_at")
    )
    running = next((turn for turn in rows if turn.state != Turn.State.QUEUED), None)
    queued = dict.fromkeys(turn.thread_id for turn in rows if turn.state == Turn.State.QUEUED)
    return Successors(running, tuple(sorted(queued, key=lambda id: id != thread_id)))


def start_queued_in(thread_ids: Iterable[uuid.UUID]) -> list[uuid.UUID]:
    """Start the next queued turn of each of these threads, if it can start; return their ids."""
    return [turn.id for id in thread_ids if (turn := start_next_queued(id)) is not None]


def start_queued_after_answer(thread_id: uuid.UUID, author_id: uuid.UUID) -> list[uuid.UUID]:
    """Start the turns that waited for an answer: the next one of its thread, then others of its author; return their ids."""
    return start_queued_in(find_successors(thread_id, author_id).queued_thread_ids)


def start_all_queued() -> list[uuid.UUID]:
    """Start the next queued turn of each thread without a running answer; return their ids."""
    running = Turn.objects.filter(thread=OuterRef("thread"), state__in=Turn.RUNNING_STATES)
    idle = Turn.objects.filter(~Exists(running), state=Turn.State.QUEUED).values_list("thread_id", flat=True).distinct()
    return start_queued_in(idle)


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
        stopped_by=None,
        heartbeat_at=timezone.now(),
        error="",
        error_code="",
        completed_at=None,
        **changes,
    )
    turn.refresh_from_db()
    notify_link_changed(thread, is_answering=True)
    return turn


def has_free_answer(person_id: uuid.UUID) -> bool:
    """Return whether this person, whose row is locked, can start another answer."""
    return _running_of(person_id).count() < settings.CATO.chat.concurrent_answers


def _running_of(person_id: uuid.UUID) -> QuerySet[Turn]:
    return Turn.objects.filter(_is_running(), author_id=person_id).order_by()


def _is_running() -> Q:
    # Answers of a dead process do not count; the sweep interrupts them.
    return Q(state__in=Turn.RUNNING_STATES, heartbeat_at__gte=timezone.now() - HEARTBEAT_TIMEOUT)


def ensure_free_answer(person_id: uuid.UUID) -> None:
    """Raise ConflictError if this person, whose row is locked, can start no other answer."""
    if not has_free_answer(person_id):
        sentence = ngettext(
            "An answer of yours is in progress. Wait until it ends, or stop it.",
            "%(count)s answers of yours are in progress. Wait until one ends, or stop one.",
            settings.CATO.chat.concurrent_answers,
        )
        raise ConflictError(sentence % {"count": format_number(settings.CATO.chat.concurrent_answers)})


def _current_session(thread: Thread, place: Place, person_id: uuid.UUID) -> ThreadSession:
    """Return the thread's last session, or a new one after `session_idle_hours` without a message."""
    now = timezone.now()
    max_idle = timedelta(hours=settings.CATO.chat.session_idle_hours)
    started_at = place.session_started_at
    if started_at is not None and now - max(thread.last_message_at, started_at) < max_idle:
        return ThreadSession(id=place.session_id, thread=thread, seq=place.session_seq, started_at=started_at)
    seq = place.session_seq + 1
    return ThreadSession.objects.create(thread=thread, seq=seq, started_by_id=person_id, started_at=now)
