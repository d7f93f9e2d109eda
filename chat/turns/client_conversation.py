"""Conversations of API clients: an OpenAI client sends its whole conversation each time; find its thread and post.

Two conversations can begin alike, so a client's word alone never replaces anything: a conversation continues a thread
only where its last exchange is the thread's last turn. A client that names its thread may also edit and regenerate.
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
from chat.models import Session, Thread, Turn
from chat.threads.locks import ensure_idle, lock_person
from chat.threads.memory_settings import set_memory_enabled
from chat.turns.branches import BranchSwitch, edit_message, regenerate
from chat.turns.posting import ApiOrigin, PostedTurn, post_message, retry, validate_message
from memory.spaces import access
from memory.text import clean_text, content_hash, excerpt
from memory.utils.formatting import format_number

# How many threads that began with the same message are compared with a conversation, the latest first.
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
    """What a client asks for. `model`: of this answer, None for the thread's; `is_remembered`: None leaves it as it is."""

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
    images: Sequence[uuid.UUID] = (),
) -> BranchSwitch:
    """Post the new message of a conversation to `thread` (one this person reads), or to the thread it continues.

    A conversation that continues no thread begins one, with its earlier exchanges in it. The same `client_key` again
    gives the same turn. A turn that failed without an answer is retried where the same message comes again.

    Raises InvalidMessageError, ConflictError (ThreadBusyError while an answer is being written) and PermissionDeniedError.
    """
    message, instructions = validate_message(conversation.message), _checked_instructions(conversation.instructions)
    conversation = replace(conversation, message=message, instructions=instructions)
    # The requests of one person are handled one after the other: there may be no thread yet whose row could be locked.
    person = lock_person(person_id)
    repeated = Turn.objects.filter(author_id=person_id, client_key=client_key, thread__deleted_at=None).first()
    if repeated is not None:
        return _return_or_retry(repeated)
    place = None
    if thread is not None:
        _apply_options(thread, person_id, options, instructions)
        place = _turn_to_replace(thread, person_id, api_token_id, conversation)
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
    if place is None:
        return BranchSwitch(
            post_message(
                thread, author_id=person_id, message=message, client_key=client_key, images=images, origin=origin
            )
        )
    if not _is_same(place.message, message):
        return edit_message(place, person_id=person_id, message=message, client_key=client_key, origin=origin)
    if place.state in _UNANSWERED and not place.answer:
        return _return_or_retry(place)
    return regenerate(place, person_id=person_id, client_key=client_key, origin=origin)


def _candidates(person_id: uuid.UUID, api_token_id: uuid.UUID, conversation: ClientConversation) -> list[Thread]:
    """Threads of this person that began with the same message, whose last turn the same API token posted."""
    alike = Thread.objects.filter(
        owner_id=person_id,
        opening=_hash_of_opening(conversation),
        deleted_at=None,
        head__author_id=person_id,
        head__api_token_id=api_token_id,
        head__message__in=[conversation.message, *(clean_text(e.message).strip() for e in conversation.earlier[-1:])],
    )
    return list(alike.select_related("head__parent").order_by("-spoken_at")[:_MAX_CANDIDATES])


def _is_continued_by(thread: Thread, conversation: ClientConversation) -> bool:
    """Return whether the last exchange of the conversation is the last turn of the thread."""
    return bool(conversation.earlier) and _is_exchange(thread.head, conversation.earlier[-1])


def _is_failed_try(thread: Thread, head: Turn, conversation: ClientConversation, options: ThreadOptions) -> bool:
    """Return whether the last turn of the thread is the same request, and failed without an answer."""
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
    """The turn of a named thread that the new message edits or repeats; None if the message goes to the end.

    A client may send its new message alone. It knows nothing of what others wrote, or the person in the browser, so
    none of that is ever replaced.
    """
    if not conversation.earlier:
        return None
    last = conversation.earlier[-1]
    shown = thread.turns.standing().select_related("thread")
    known = shown.filter(author_id=person_id, api_token_id=api_token_id)
    same_message = known.filter(message=clean_text(last.message).strip()).order_by("-position")
    before = next((turn for turn in same_message if _is_exchange(turn, last)), None)
    if before is None:
        return None
    later = shown.filter(position__gt=before.position)
    place = later.first()
    if place is None or place.is_active or place.state == Turn.State.QUEUED:
        return None
    return None if later.exclude(author_id=person_id, api_token_id=api_token_id).exists() else place


def _create_thread(
    person_id: uuid.UUID,
    conversation: ClientConversation,
    api_token_id: uuid.UUID,
    options: ThreadOptions,
    *,
    model: str,
) -> Thread:
    """Create a thread in the personal space with the earlier exchanges in it.

    Those go into prompts and are not stored in memory: they are stored where they were said, and what was forgotten
    there must not come back this way.
    """
    now = timezone.now()
    thread = Thread.objects.create(
        owner_id=person_id,
        space=access.personal_space(person_id),
        title=excerpt(_opening_of(conversation), 80),
        model=model if options.model is None else options.model,
        is_remembered=options.is_remembered is not False,
        instructions=conversation.instructions,
        opening=_hash_of_opening(conversation),
        spoken_at=now,
    )
    if not conversation.earlier:
        return thread
    session = Session.objects.create(thread=thread, started_by_id=person_id, started_at=now)
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
    """Apply what the client asks for to the thread. In another person's thread its system messages are left out."""
    is_owner = thread.owner_id == person_id
    if options.is_remembered is not None and options.is_remembered != thread.is_remembered:
        if not is_owner:
            raise PermissionDeniedError(_("Only the owner of this thread decides whether it is saved to memory."))
        set_memory_enabled(thread, options.is_remembered)
    if is_owner and instructions and instructions != thread.instructions:
        Thread.objects.filter(id=thread.id).update(instructions=instructions)


def _return_or_retry(turn: Turn) -> BranchSwitch:
    """Return the same turn; retry it where it failed without an answer."""
    if turn.state not in _UNANSWERED or turn.answer or not turn.stands:
        return BranchSwitch(PostedTurn(turn, is_new=False))
    ensure_idle(turn.thread)
    return BranchSwitch(PostedTurn(retry(turn), is_new=True))


def _checked_instructions(text: str) -> str:
    text = clean_text(text).strip()
    most = settings.CATO.chat.max_message_chars
    if len(text) > most:
        sentence = _("The system messages have %(count)s characters; at most %(most)s fit.")
        raise InvalidMessageError(sentence % {"count": format_number(len(text)), "most": format_number(most)})
    return text


def _hash_of_opening(conversation: ClientConversation) -> str:
    return content_hash(_normalized(_opening_of(conversation)))


def _opening_of(conversation: ClientConversation) -> str:
    return conversation.earlier[0].message if conversation.earlier else conversation.message


def _is_exchange(turn: Turn | None, exchange: PastExchange) -> bool:
    return turn is not None and _is_same(turn.message, exchange.message) and _is_same(turn.answer, exchange.answer)


def _is_same(one: str, other: str) -> bool:
    return _normalized(one) == _normalized(other)


def _normalized(text: str) -> str:
    """The text without what clients change on the way: the amount and kind of white space."""
    return " ".join(clean_text(text).split())
