"""Recognises the thread that a client's conversation continues, by its messages and answers."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists

from chat.models import Thread, Turn
from memory import api as memory
from memory.api import clean_text, content_hash

# The number of threads that are compared with a conversation, latest first.
_MAX_CANDIDATES = 20
_OPENING = "You began this conversation with:\n\n%s"


@dataclass(frozen=True, slots=True)
class PastExchange:
    """An earlier message of a conversation, with its answer."""

    message: str
    answer: str


@dataclass(frozen=True, slots=True)
class ClientConversation:
    """A conversation as a client sends it: system messages, earlier exchanges, and the new message.

    `opening` is what the assistant said before the first message: a greeting, or the rest of a dropped beginning.
    `tool_messages` are the calls of the client's tools after the new message, and their results, in OpenAI's format.
    """

    message: str
    earlier: tuple[PastExchange, ...] = ()
    instructions: str = ""
    tool_messages: tuple[dict[str, Any], ...] = ()
    opening: str = ""

    @property
    def instructions_with_opening(self) -> str:
        """The system messages, with the opening as a fact for the model."""
        return "\n\n".join(filter(None, (self.instructions, _OPENING % self.opening if self.opening else "")))


def candidates(person_id: uuid.UUID, api_token_id: uuid.UUID, conversation: ClientConversation) -> list[Thread]:
    """Return this person's threads with the same first message whose last turn was posted with the same API token.

    The owner of a thread can lose it: it is moved, or they leave its space.
    """
    threads = Thread.objects.filter(
        owner_id=person_id,
        space__in=memory.readable_spaces(person_id),
        opening_hash=opening_hash(conversation),
        deleted_at=None,
        head__author_id=person_id,
        head__api_token_id=api_token_id,
        head__message__in=[conversation.message, *(clean_text(e.message).strip() for e in conversation.earlier[-1:])],
    )
    return list(threads.select_related("head__parent").order_by("-last_message_at")[:_MAX_CANDIDATES])


def find_trimmed(person_id: uuid.UUID, api_token_id: uuid.UUID, conversation: ClientConversation) -> Thread | None:
    """Return the thread that ends with all of this conversation, whose beginning the client has dropped.

    Only threads of this person whose last turn was posted with the same API token are compared. None if several end like
    this, or a thread begins with the first message, so that the conversation can be whole.
    """
    if not conversation.earlier and not conversation.tool_messages:
        return None
    last = conversation.message if conversation.tool_messages else conversation.earlier[-1].message
    own = Thread.objects.filter(owner_id=person_id)
    threads = own.filter(
        ~Exists(own.filter(opening_hash=opening_hash(conversation))),
        space__in=memory.readable_spaces(person_id),
        deleted_at=None,
        head__author_id=person_id,
        head__api_token_id=api_token_id,
        head__message=clean_text(last).strip(),
    )
    compared = list(threads.order_by("-last_message_at")[: _MAX_CANDIDATES + 1])
    if len(compared) > _MAX_CANDIDATES:
        return None
    ending = [thread for thread in compared if _ends_with(thread, conversation)]
    return ending[0] if len(ending) == 1 else None


def _ends_with(thread: Thread, conversation: ClientConversation) -> bool:
    exchanges = conversation.earlier[::-1]
    turns = list(thread.turns.active_branch().order_by("-position")[: len(exchanges) + 2])
    if conversation.tool_messages and not waits_for(turns.pop(0), conversation):
        return False
    before = turns[len(exchanges) :]
    if conversation.opening and not (before and is_same(before[0].answer, conversation.opening)):
        return False
    return len(turns) >= len(exchanges) and all(map(is_exchange, turns, exchanges))


def waits_for(turn: Turn, conversation: ClientConversation) -> bool:
    """Return whether the turn waits for results of tools that the conversation has."""
    known = len(turn.tool_messages)
    return turn.waits_for_tools and is_same_tool_use(turn.tool_messages, conversation.tool_messages[:known])


def is_continued_by(thread: Thread, conversation: ClientConversation) -> bool:
    """Return whether the last turn of the thread is the last earlier exchange of the conversation."""
    return bool(conversation.earlier) and is_exchange(thread.head, conversation.earlier[-1])


def follows_same(head: Turn, conversation: ClientConversation) -> bool:
    """Return whether the turn has the conversation's new message, after the same exchange."""
    if not is_same(head.message, conversation.message):
        return False
    return is_exchange(head.parent, conversation.earlier[-1]) if conversation.earlier else head.parent_id is None


def is_exchange(turn: Turn | None, exchange: PastExchange) -> bool:
    """Return whether the turn has this message and this answer, or the beginning of it if the answer was stopped."""
    if turn is None or turn.waits_for_tools or not is_same(turn.message, exchange.message):
        return False
    # A client that stops an answer has not received its last words.
    is_beginning = turn.state == Turn.State.STOPPED and bool(exchange.answer.strip())
    return is_same(turn.answer, exchange.answer) or (
        is_beginning and _normalized(turn.answer).startswith(_normalized(exchange.answer))
    )


def is_same_tool_use(one: Sequence[dict[str, Any]], other: Sequence[dict[str, Any]]) -> bool:
    """Return whether both have the same calls and results. Clients change the white space of texts and arguments."""
    return [*map(_tool_facts, one)] == [*map(_tool_facts, other)]


def _tool_facts(message: dict[str, Any]) -> tuple[Any, ...]:
    if message["role"] == "tool":
        return ("tool", message["tool_call_id"], _normalized(message["content"]))
    return ("assistant", *((call["id"], call["function"]["name"]) for call in message.get("tool_calls", ())))


def opening_hash(conversation: ClientConversation) -> str:
    """Return the hash of the first message, by which threads are found."""
    return content_hash(_normalized(first_message(conversation)))


def first_message(conversation: ClientConversation) -> str:
    """Return the first message of the conversation."""
    return conversation.earlier[0].message if conversation.earlier else conversation.message


def is_same(one: str, other: str) -> bool:
    """Return whether both texts are equal but for white space, which clients change."""
    return _normalized(one) == _normalized(other)


def _normalized(text: str) -> str:
    return " ".join(clean_text(text).split())
