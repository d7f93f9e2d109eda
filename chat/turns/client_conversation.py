"""Conversations of API clients: an OpenAI client sends the whole conversation each time; find its thread and post.

Conversations can have the same beginning, so the text alone never replaces a turn: a conversation continues a thread
only if its last exchange is the thread's last turn. A client that names its thread can also edit and regenerate.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.errors import InvalidMessageError, PermissionDeniedError
from chat.models import Thread, ThreadSession, Turn
from chat.threads.locks import ensure_idle, lock_person
from chat.threads.memory_settings import set_memory_enabled
from chat.turns.branches import BranchSwitch, edit_message, regenerate
from chat.turns.posting import ApiOrigin, PostedTurn, post_message, retry_turn, validate_message
from memory import api as memory
from memory.api import clean_text, content_hash, excerpt, format_number

# The number of threads with the same first message that are compared with a conversation, latest first.
_MAX_CANDIDATES = 20
_UNANSWERED = (Turn.State.FAILED, Turn.State.INTERRUPTED, Turn.State.STOPPED)


@dataclass(frozen=True, slots=True)
class PastExchange:
    """An earlier message of a conversation, with its answer."""

    message: str
    answer: str


@dataclass(frozen=True, slots=True)
class ClientConversation:
    """A conversation as a client sends it: system messages, earlier exchanges, and the new message."""

    message: str
    earlier: tuple[PastExchange, ...] = ()
    instructions: str = ""


@dataclass(frozen=True, slots=True)
class ThreadOptions:
    """Options of a request: `model` for this answer, None for the thread's; `is_remembered`, None for no change."""

    model: str | None = None
    is_remembered: bool | None = None


@transaction.atomic
def submit_conversation(
    person_id: uuid.UUID,
    conversation: ClientConversation,
    *,
    client_key: uuid.UUID,
    api_token_id: uuid.UUID,
    thread: Thread | None = None,
    options: ThreadOptions = ThreadOptions(),
    attachments: Sequence[uuid.UUID] = (),
) -> BranchSwitch:
    """Post the new message of a conversation to `thread`, which this person can read, or to the thread it continues.

    If it continues no thread, create one that contains its earlier exchanges. Idempotent by `client_key`. The same
    message again retries a turn that failed without an answer.

    Raises InvalidMessageError, ConflictError (ThreadBusyError while an answer is in progress) and PermissionDeniedError.
    """
    message, instructions = validate_message(conversation.message), _validate_instructions(conversation.instructions)
    conversation = replace(conversation, message=message, instructions=instructions)
    # Requests of one person run one after the other: there may be no thread yet whose row could be locked.
    person = lock_person(person_id)
    repeated = Turn.objects.filter(author_id=person_id, client_key=client_key, thread__deleted_at=None).first()
    if repeated is not None:
        return _return_or_retry(repeated)
    replaced = None
    if thread is not None:
        _apply_options(thread, person_id, options, instructions)
        replaced = _turn_to_replace(thread, person_id, api_token_id, conversation)
    else:
        candidates = _candidates(person_id, api_token_id, conversation)
        failed = next((t.head for t in candidates if t.head and _is_failed_try(t, t.head, conversation, options)), None)
        if failed is not None:
            return _return_or_retry(failed)
        thread = next((t for t in candidates if _is_continued_by(t, conversation)), None)
        if thread is not None:
            _apply_options(thread, person_id, options, instructions)
        else:
            thread = _create_thread(person_id, conversation, api_token_id, options, model=person.default_model)
    origin = ApiOrigin(api_token_id, options.model or "")
    if replaced is None:
        return BranchSwitch(
            post_message(
                thread,
                author_id=person_id,
                message=message,
                client_key=client_key,
                attachments=attachments,
                origin=origin,
            )
        )
    if not _is_same(replaced.message, message):
        return edit_message(replaced, person_id=person_id, message=message, client_key=client_key, origin=origin)
    if replaced.state in _UNANSWERED and not replaced.answer:
        return _return_or_retry(replaced)
    return regenerate(replaced, person_id=person_id, client_key=client_key, origin=origin)


def _candidates(person_id: uuid.UUID, api_token_id: uuid.UUID, conversation: ClientConversation) -> list[Thread]:
    """Return this person's threads with the same first message whose last turn was posted with the same API token."""
    threads = Thread.objects.filter(
        owner_id=person_id,
        opening_hash=_opening_hash(conversation),
        deleted_at=None,
        head__author_id=person_id,
        head__api_token_id=api_token_id,
        head__message__in=[conversation.message, *(clean_text(e.message).strip() for e in conversation.earlier[-1:])],
    )
    return list(threads.select_related("head__parent").order_by("-last_message_at")[:_MAX_CANDIDATES])


def _is_continued_by(thread: Thread, conversation: ClientConversation) -> bool:
    return bool(conversation.earlier) and _is_exchange(thread.head, conversation.earlier[-1])


def _is_failed_try(thread: Thread, head: Turn, conversation: ClientConversation, options: ThreadOptions) -> bool:
    """Return whether the last turn of the thread is the same request and failed without an answer."""
    if head.state not in _UNANSWERED or head.answer or not _is_same(head.message, conversation.message):
        return False
    is_same_request = (
        head.requested_model == (options.model or "")
        and thread.instructions == conversation.instructions
        and options.is_remembered in (None, thread.is_remembered)
    )
    follows_same = (
        _is_exchange(head.parent, conversation.earlier[-1]) if conversation.earlier else head.parent_id is None
    )
    return is_same_request and follows_same


def _turn_to_replace(
    thread: Thread, person_id: uuid.UUID, api_token_id: uuid.UUID, conversation: ClientConversation
) -> Turn | None:
    """Return the turn of a named thread that the new message edits or repeats; None if the message goes to the end.

    A client can send its new message alone. Messages of other people, or from the browser, are unknown to it and are
    never replaced.
    """
    if not conversation.earlier:
        return None
    last = conversation.earlier[-1]
    branch = thread.turns.active_branch().select_related("thread")
    known = branch.filter(author_id=person_id, api_token_id=api_token_id)
    same_message = known.filter(message=clean_text(last.message).strip()).order_by("-position")
    previous = next((turn for turn in same_message if _is_exchange(turn, last)), None)
    if previous is None:
        return None
    later = branch.filter(position__gt=previous.position)
    replaced = later.first()
    if replaced is None or replaced.is_running or replaced.state == Turn.State.QUEUED:
        return None
    return None if later.exclude(author_id=person_id, api_token_id=api_token_id).exists() else replaced


def _create_thread(
    person_id: uuid.UUID,
    conversation: ClientConversation,
    api_token_id: uuid.UUID,
    options: ThreadOptions,
    *,
    model: str,
) -> Thread:
    """Create a thread in the personal space that contains the earlier exchanges.

    They are used in prompts but not stored in memory: their original thread stores them, and exchanges forgotten there
    must not be stored again.
    """
    now = timezone.now()
    thread = Thread.objects.create(
        owner_id=person_id,
        space=memory.personal_space(person_id),
        title=excerpt(_first_message(conversation), 80),
        model=model if options.model is None else options.model,
        is_remembered=options.is_remembered is not False,
        instructions=conversation.instructions,
        opening_hash=_opening_hash(conversation),
        last_message_at=now,
    )
    if not conversation.earlier:
        return thread
    session = ThreadSession.objects.create(thread=thread, started_by_id=person_id, started_at=now)
    turns: list[Turn] = []
    for position, exchange in enumerate(conversation.earlier):
        turns.append(
            Turn(
                thread=thread,
                session=session,
                parent=turns[-1] if turns else None,
                position=position,
                author_id=person_id,
                client_key=uuid.uuid4(),
                api_token_id=api_token_id,
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


def _apply_options(thread: Thread, person_id: uuid.UUID, options: ThreadOptions, instructions: str) -> None:
    """Apply the options to the thread. System messages are ignored in another person's thread."""
    is_owner = thread.owner_id == person_id
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


def _opening_hash(conversation: ClientConversation) -> str:
    return content_hash(_normalized(_first_message(conversation)))


def _first_message(conversation: ClientConversation) -> str:
    return conversation.earlier[0].message if conversation.earlier else conversation.message


def _is_exchange(turn: Turn | None, exchange: PastExchange) -> bool:
    return turn is not None and _is_same(turn.message, exchange.message) and _is_same(turn.answer, exchange.answer)


def _is_same(one: str, other: str) -> bool:
    return _normalized(one) == _normalized(other)


def _normalized(text: str) -> str:
    """Collapse white space, which clients change."""
    return " ".join(clean_text(text).split())
