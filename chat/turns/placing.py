"""Find the place of a new turn in its thread, and create it there."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import Exists, Subquery
from django.utils import timezone

from chat.attachments import add_attachments
from chat.mentions import create_mentions
from chat.models import Attachment, Thread, ThreadSession, Turn
from chat.realtime.notifications import notify_link_changed
from chat.threads.reader_marks import ensure_marker
from chat.turns.answer_limit import running_answers_of
from memory import api as memory


@dataclass(frozen=True, slots=True)
class ApiOrigin:
    """The API token with which a turn was posted, and what the client requested: a model, and options of the model.

    The command line has no token. `tool_messages` are the calls and results of its tools that follow the message.
    """

    api_token_id: uuid.UUID | None = None
    requested_model: str = ""
    generation_options: dict[str, Any] = field(default_factory=dict)
    tool_messages: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a turn of this author would go in a thread.

    `is_busy`: it has to wait for an answer of the thread or of the author, after `queued` others. `existing_id` is the
    turn with the same client key, if any. `has_siblings`: the head of the thread has been answered before. `session_id`
    is None in a thread without sessions.
    """

    existing_id: uuid.UUID | None = None
    is_busy: bool = False
    queued: int = 0
    has_siblings: bool = False
    position: int = 0
    session_id: uuid.UUID | None = None
    session_seq: int = -1
    session_started_at: datetime | None = None


def find_place(thread: Thread, *, author_id: uuid.UUID, client_key: uuid.UUID) -> Place:
    """Return the place of a turn in the thread; the rows of thread and author are locked."""
    turns = Turn.objects.filter(thread_id=thread.id).order_by()
    running = running_answers_of(author_id)[settings.CATO.chat.concurrent_answers - 1 :]
    # The row of the last session, joined to the thread, which can have none.
    last_sessions = Thread.objects.filter(id=thread.id).order_by("-sessions__seq")
    existing_id, last_position, is_thread_busy, is_author_busy, has_siblings, session_id, seq, started_at = (
        last_sessions.values_list(
            Subquery(turns.filter(client_key=client_key).values("id")),
            Subquery(turns.order_by("-position").values("position")[:1]),
            Exists(turns.unfinished()),
            Exists(running),
            Exists(turns.filter(parent_id=thread.head_id)),
            "sessions__id",
            "sessions__seq",
            "sessions__started_at",
        )[0]
    )
    is_busy = is_thread_busy or is_author_busy
    return Place(
        existing_id=existing_id,
        is_busy=is_busy,
        queued=turns.filter(state=Turn.State.QUEUED).count() if is_thread_busy else 0,
        has_siblings=has_siblings,
        position=0 if last_position is None else last_position + 1,
        session_id=session_id,
        session_seq=-1 if seq is None else seq,
        session_started_at=started_at,
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
    digest_scope: dict[str, Any] | None = None,
) -> Turn:
    """Create a turn as the head of the thread, whose row is locked, and mark the thread as read for its author.

    A new thread has `turn_id` as its head already. `written_at` is the date of the message; None: now. Raises
    InvalidInputError if the thread is in an archived project.
    """
    memory.ensure_open(thread.space)
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
        digest_scope=digest_scope,
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
    create_mentions(turn, is_news=written_at is None)
    notify_link_changed(thread, is_answering=True if state == Turn.State.RECALLING else None, is_latest=True)
    return turn


def _current_session(thread: Thread, place: Place, person_id: uuid.UUID) -> ThreadSession:
    """Return the thread's last session, or a new one after `session_idle_hours` without a message."""
    now = timezone.now()
    max_idle = timedelta(hours=settings.CATO.chat.session_idle_hours)
    started_at = place.session_started_at
    if started_at is not None and now - max(thread.last_message_at, started_at) < max_idle:
        return ThreadSession(id=place.session_id, thread=thread, seq=place.session_seq, started_at=started_at)
    seq = place.session_seq + 1
    return ThreadSession.objects.create(thread=thread, seq=seq, started_by_id=person_id, started_at=now)
