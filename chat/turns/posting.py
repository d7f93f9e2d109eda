"""Post messages. Turns are committed before any model is called."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import access
from chat.attachments import claim_attachments
from chat.errors import InvalidMessageError
from chat.llm.choices import ensure_may_receive, model_of_new_thread
from chat.models import Attachment, Thread, Turn
from chat.threads.locks import lock_person
from chat.turns.answer_limit import running_answers_of
from chat.turns.placing import ApiOrigin, Place, create_turn, find_place
from chat.usage.limits import ensure_within_limits, has_limits
from memory import api as memory
from memory.api import NO_FILTER, RecallFilter, Space, clean_text, excerpt, format_number

MAX_QUEUED = 5  # messages of a thread that wait for an answer


@dataclass(frozen=True, slots=True)
class PostedTurn:
    """The turn of a message; `is_new` is False if the same client key had already created it.

    A new turn has its author, its thread with its space, and its session loaded; `attachments` are those of its message;
    `is_only_version`: it is known that no turn has the same parent; `queue_position` counts from 1, 0 if it is not queued.
    `has_usage_limits`: there is any limit of usage.
    """

    turn: Turn
    is_new: bool
    attachments: tuple[Attachment, ...] = ()
    is_only_version: bool = False
    queue_position: int = 0
    has_usage_limits: bool = False


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
    model: str | None = None,
    tool_server_ids: Sequence[uuid.UUID] = (),
    has_web_search: bool = False,
) -> PostedTurn:
    """Create a thread with its first message in `space`, which this person can read; None: the personal space.

    `model`: that of the thread, "" for the configured one; None: the default of the space or else of the person. `is_typed`:
    the person typed the message on a page. `tool_server_ids` are switched on in the thread. `has_web_search`: the web is
    searched for its messages. Idempotent by `client_key`. Raises InvalidMessageError, DataPolicyError and UsageLimitError.
    """
    message = validate_message(message)
    # Concurrent copies of a message wait for each other here: there is no thread yet whose row could be locked.
    person = lock_person(person_id)
    repeated = Turn.objects.filter(author_id=person_id, client_key=client_key, position=0).order_by()
    # A union, because each part has an index; of one condition, SQLite would read all turns of the person.
    own_turns = list(running_answers_of(person_id).union(repeated, all=True))
    existing = next((turn for turn in own_turns if turn.client_key == client_key and turn.position == 0), None)
    if existing is not None:
        return PostedTurn(existing, is_new=False)
    space = space or memory.personal_space(person_id)
    ensure_within_limits(person, space=space, api_token_id=origin.api_token_id if origin else None)
    model = model_of_new_thread(person, space) if model is None else model
    ensure_may_receive(person, space=space, choice=(origin.requested_model if origin else "") or model)
    has_free = len(own_turns) < settings.CATO.chat.concurrent_answers
    now, turn_id = timezone.now(), uuid.uuid4()
    thread = Thread.objects.create(
        owner=person,
        space=space,
        title=excerpt(message, 80),
        model=model,
        is_remembered=is_remembered,
        recall_filter={} if recall_filter.is_empty else recall_filter.as_json(),
        tool_server_ids=[str(id) for id in tool_server_ids],
        has_web_search=has_web_search,
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
    thread_id: uuid.UUID,
    *,
    author_id: uuid.UUID,
    message: str,
    client_key: uuid.UUID,
    attachments: Sequence[uuid.UUID] = (),
    origin: ApiOrigin | None = None,
    is_typed: bool = False,
    digest_scope: dict[str, Any] | None = None,
) -> PostedTurn:
    """Post a message to a thread that its author may read; idempotent by `client_key`.

    Raises NotFoundError, UsageLimitError, DataPolicyError, and InvalidMessageError, also if the queue is full.

    `is_typed`: the author typed the message on a page. It is queued while the thread is busy, or while its author has
    `chat.concurrent_answers` answers in progress. `digest_scope`: the message is a digest's, with this `DigestScope`.
    """
    message = validate_message(message)
    person = lock_person(author_id)
    # One statement checks the access and locks the row.
    thread = access.get_locked_thread(author_id, thread_id)
    place = find_place(thread, author_id=author_id, client_key=client_key)
    if place.existing_id is not None:
        existing = thread.turns.get(id=place.existing_id)
        return PostedTurn(existing, is_new=False, has_usage_limits=has_limits(person))
    if place.is_busy and place.queued >= MAX_QUEUED:
        sentence = _("%(count)s messages are queued. Send this one after the next answer.")
        raise InvalidMessageError(sentence % {"count": format_number(MAX_QUEUED)})
    ensure_within_limits(person, space=thread.space, api_token_id=origin.api_token_id if origin else None)
    ensure_may_receive(person, space=thread.space, choice=(origin.requested_model if origin else "") or thread.model)
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
        digest_scope=digest_scope,
    )
    return PostedTurn(
        turn,
        is_new=True,
        attachments=claimed,
        is_only_version=not place.has_siblings,
        queue_position=place.queued + 1 if place.is_busy else 0,
        has_usage_limits=has_limits(person),
    )
