"""Conversations of API clients: an OpenAI client sends the whole conversation each time; find its thread and post.

Conversations can have the same beginning, so the text alone never replaces a turn: a conversation continues a thread
only if its last exchange is the thread's last turn. A client that names its thread can also edit and regenerate.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import access
from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.models import Thread, ThreadSession, Turn
from chat.threads.fork import fork_thread
from chat.threads.locks import ensure_idle, lock_person
from chat.threads.memory_settings import set_memory_enabled
from chat.turns.branches import BranchSwitch, edit_message, regenerate
from chat.turns.client_matching import (
    ClientConversation,
    candidates,
    find_trimmed,
    first_message,
    follows_same,
    is_continued_by,
    is_exchange,
    is_same,
    is_same_tool_use,
    opening_hash,
)
from chat.turns.client_tools import answer_on, find_tool_turn
from chat.turns.placing import ApiOrigin
from chat.turns.posting import PostedTurn, post_message, validate_message
from chat.turns.restarting import retry_turn
from memory import api as memory
from memory.api import clean_text, excerpt, format_number

_UNANSWERED = (Turn.State.FAILED, Turn.State.INTERRUPTED, Turn.State.STOPPED)


@dataclass(frozen=True, slots=True)
class ThreadOptions:
    """Options of a request: `model` for this answer, None for the thread's; `is_remembered`, None for no change.

    `generation` are the options of the model for this answer, as `chat.llm.client.stream` takes them.
    """

    model: str | None = None
    is_remembered: bool | None = None
    generation: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """Where a conversation leaves a thread that this person can read: after this turn, or before it."""

    turn: Turn
    is_included: bool = True


@dataclass(frozen=True, slots=True)
class _Submission:
    """A conversation, who sends it, and with which options; the row of the person is locked."""

    person: Any  # of the model of people
    conversation: ClientConversation
    client_key: uuid.UUID
    api_token_id: uuid.UUID
    options: ThreadOptions
    attachments: Sequence[uuid.UUID]

    @property
    def origin(self) -> ApiOrigin:
        """Return what the turn keeps of the request."""
        options, tool_messages = self.options, list(self.conversation.tool_messages)
        return ApiOrigin(self.api_token_id, options.model or "", options.generation, tool_messages)

    def with_instructions(self, instructions: str) -> _Submission:
        """Return this with these instructions of its conversation. Raises InvalidMessageError if they are too long."""
        instructions = _validate_instructions(instructions)
        return replace(self, conversation=replace(self.conversation, instructions=instructions))


@transaction.atomic
def submit_conversation(
    person_id: uuid.UUID,
    conversation: ClientConversation,
    *,
    client_key: uuid.UUID,
    api_token_id: uuid.UUID,
    thread: Thread | None = None,
    fork_point: ForkPoint | None = None,
    options: ThreadOptions = ThreadOptions(),
    attachments: Sequence[uuid.UUID] = (),
) -> BranchSwitch:
    """Post the new message of a conversation to `thread`, which this person can read, or to the thread it continues.

    With a `fork_point`, post it to a fork instead. If it continues no thread, create one that contains its earlier
    exchanges. Idempotent by `client_key`. The same message again retries a turn that failed without an answer.

    Raises NotFoundError if this person lost the thread of an earlier request with this key, InvalidMessageError,
    ConflictError (ThreadBusyError while an answer is in progress) and PermissionDeniedError.
    """
    conversation = replace(conversation, message=validate_message(conversation.message))
    # Requests of one person run one after the other: there may be no thread yet whose row could be locked.
    person = lock_person(person_id)
    repeated = Turn.objects.filter(author_id=person_id, client_key=client_key, thread__deleted_at=None).first()
    if repeated is not None:
        access.get_thread(person_id, repeated.thread_id)
        return _return_or_retry(repeated)
    submission = _Submission(person, conversation, client_key, api_token_id, options, attachments)
    if fork_point is not None:
        thread = fork_thread(fork_point.turn, person_id=person_id, is_included=fork_point.is_included)
    return _submit_to_matching(submission) if thread is None else _submit_to(thread, submission)


def _submit_to(thread: Thread, submission: _Submission) -> BranchSwitch:
    """Post to the thread that the client names; its last message may edit or repeat the thread's."""
    submission = submission.with_instructions(submission.conversation.instructions_with_opening)
    waiting = _find_tool_turn([thread], submission, is_known=True)
    if waiting is not None:
        return _answer_tool_turn(waiting, submission)
    _apply_options(thread, submission)
    replaced = _turn_to_replace(thread, submission)
    return _post(thread, submission) if replaced is None else _replace_turn(replaced, submission)


def _submit_to_matching(submission: _Submission) -> BranchSwitch:
    """Post to the thread that the conversation continues, or to a new one."""
    sender = (submission.person.id, submission.api_token_id)
    found = candidates(*sender, submission.conversation)
    trimmed = None if found else find_trimmed(*sender, submission.conversation)
    conversation = submission.conversation
    # In a trimmed conversation, what the assistant said first is an answer of the thread.
    submission = submission.with_instructions(
        conversation.instructions if trimmed else conversation.instructions_with_opening
    )
    waiting = _find_tool_turn([trimmed] if trimmed else found, submission, is_known=trimmed is not None)
    if waiting is not None:
        return _answer_tool_turn(waiting, submission)
    failed = next((t.head for t in found if t.head and _is_failed_try(t, t.head, submission)), None)
    if failed is not None:
        return _return_or_retry(failed)
    thread = trimmed or next((t for t in found if is_continued_by(t, submission.conversation)), None)
    if thread is None:
        return _post(_create_thread(submission), submission)
    _apply_options(thread, submission)
    return _post(thread, submission)


def _post(thread: Thread, submission: _Submission) -> BranchSwitch:
    return BranchSwitch(
        post_message(
            thread.id,
            author_id=submission.person.id,
            message=submission.conversation.message,
            client_key=submission.client_key,
            attachments=submission.attachments,
            origin=submission.origin,
        )
    )


def _replace_turn(replaced: Turn, submission: _Submission) -> BranchSwitch:
    """Edit or regenerate this turn; one that failed without an answer is retried."""
    person_id, message = submission.person.id, submission.conversation.message
    key, origin = submission.client_key, submission.origin
    if not is_same(replaced.message, message):
        return edit_message(replaced, person_id=person_id, message=message, client_key=key, origin=origin)
    if replaced.state in _UNANSWERED and not replaced.answer and _has_same_tools(replaced, submission.conversation):
        return _return_or_retry(replaced)
    return regenerate(replaced, person_id=person_id, client_key=key, origin=origin)


def _find_tool_turn(threads: Sequence[Thread], submission: _Submission, *, is_known: bool) -> Turn | None:
    """Return the turn that waits for the results of tools which the conversation brings, if any."""
    conversation = submission.conversation
    if not conversation.tool_messages:
        return None
    return find_tool_turn(threads, submission.person.id, submission.api_token_id, conversation, is_known=is_known)


def _answer_tool_turn(waiting: Turn, submission: _Submission) -> BranchSwitch:
    _apply_options(waiting.thread, submission)
    return answer_on(waiting, submission.conversation, submission.origin, client_key=submission.client_key)


def _is_failed_try(thread: Thread, head: Turn, submission: _Submission) -> bool:
    """Return whether the last turn of the thread is the same request and failed without an answer."""
    conversation, options = submission.conversation, submission.options
    if head.state not in _UNANSWERED or head.answer or not follows_same(head, conversation):
        return False
    return (
        head.requested_model == (options.model or "")
        and head.generation_options == options.generation
        and _has_same_tools(head, conversation)
        and thread.instructions == conversation.instructions
        and options.is_remembered in (None, thread.is_remembered)
    )


def _has_same_tools(turn: Turn, conversation: ClientConversation) -> bool:
    return is_same_tool_use(turn.tool_messages, conversation.tool_messages)


def _turn_to_replace(thread: Thread, submission: _Submission) -> Turn | None:
    """Return the turn of a named thread that the new message edits or repeats; None if the message goes to the end.

    A client can send its new message alone. Messages of other people, or from the browser, are unknown to it and are
    never replaced.
    """
    if not submission.conversation.earlier:
        return None
    last = submission.conversation.earlier[-1]
    branch = thread.turns.active_branch().select_related("thread")
    sender = {"author_id": submission.person.id, "api_token_id": submission.api_token_id}
    known = branch.filter(**sender)
    same_message = known.filter(message=clean_text(last.message).strip()).order_by("-position")
    previous = next((turn for turn in same_message if is_exchange(turn, last)), None)
    if previous is None:
        return None
    later = branch.filter(position__gt=previous.position)
    replaced = later.first()
    if replaced is None or replaced.is_running or replaced.state == Turn.State.QUEUED:
        return None
    return None if later.exclude(**sender).exists() else replaced


def _create_thread(submission: _Submission) -> Thread:
    """Create a thread in the personal space that contains the earlier exchanges.

    They are used in prompts but not stored in memory: their original thread stores them, and exchanges forgotten there
    must not be stored again.
    """
    person, conversation, options = submission.person, submission.conversation, submission.options
    now = timezone.now()
    thread = Thread.objects.create(
        owner=person,
        space=memory.personal_space(person.id),
        title=excerpt(clean_text(first_message(conversation)), 80),
        model=person.default_model if options.model is None else options.model,
        is_remembered=options.is_remembered is not False,
        instructions=conversation.instructions,
        opening_hash=opening_hash(conversation),
        last_message_at=now,
    )
    if not conversation.earlier:
        return thread
    session = ThreadSession.objects.create(thread=thread, started_by=person, started_at=now)
    turns: list[Turn] = []
    for position, exchange in enumerate(conversation.earlier):
        turns.append(
            Turn(
                thread=thread,
                session=session,
                parent=turns[-1] if turns else None,
                position=position,
                author=person,
                client_key=uuid.uuid4(),
                api_token_id=submission.api_token_id,
                message=clean_text(exchange.message).strip(),
                answer=clean_text(exchange.answer).strip(),
                state=Turn.State.COMPLETE,
                completed_at=now,
            )
        )
    Turn.objects.bulk_create(turns)
    thread.head = turns[-1]
    thread.save(update_fields=["head"])
    return thread


def _apply_options(thread: Thread, submission: _Submission) -> None:
    """Apply the options to the thread. System messages are ignored in another person's thread."""
    options, instructions = submission.options, submission.conversation.instructions
    is_owner = thread.owner_id == submission.person.id
    if options.is_remembered is not None and options.is_remembered != thread.is_remembered:
        if not is_owner:
            raise PermissionDeniedError(_("Only the owner of this thread decides whether it is saved to memory."))
        set_memory_enabled(thread, options.is_remembered)
    if is_owner and instructions and instructions != thread.instructions:
        Thread.objects.filter(id=thread.id).update(instructions=instructions)


def _return_or_retry(turn: Turn) -> BranchSwitch:
    """Return the turn, after a retry if it failed without an answer."""
    if turn.state not in _UNANSWERED or turn.answer or not turn.is_on_active_branch:
        return BranchSwitch(PostedTurn(turn, is_new=False))
    ensure_idle(turn.thread)
    return BranchSwitch(PostedTurn(retry_turn(turn), is_new=True))


def _validate_instructions(text: str) -> str:
    text = clean_text(text).strip()
    limit = settings.CATO.chat.max_message_chars
    if len(text) > limit:
        sentence = _("The system messages have %(count)s characters; at most %(most)s fit.")
        raise InvalidMessageError(sentence % {"count": format_number(len(text)), "most": format_number(limit)})
    return text
