"""The responses of a thread: each is one round of a turn, which ends with calls of tools or with the final answer."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass, field

from django.utils.translation import gettext as _

from cato_web.api_auth import Principal
from cato_web.openai_api.errors import OpenAIError
from cato_web.openai_api.messages import Message
from chat import access
from chat.models import Thread, Turn
from chat.services import ForkPoint
from memory.api import NotFoundError, forgotten_ids

_ID = re.compile(r"resp_([0-9a-f]{32})_([0-9]{1,5})")


@dataclass(frozen=True, slots=True)
class ResponseRound:
    """A response: a turn, and how many tool messages it had when this response began."""

    turn: Turn
    start: int

    @property
    def id(self) -> str:
        """The id for clients."""
        return f"resp_{self.turn.id.hex}_{self.start}"

    @property
    def is_latest(self) -> bool:
        """Return whether the turn has not gone on with results of tools since."""
        return self.start == latest_round(self.turn).start


@dataclass(frozen=True, slots=True)
class Continuation:
    """The context of a request, before its input: messages, and their thread or where to fork one.

    Without both, the thread is a new or a recognised one.
    """

    thread: Thread | None = None
    fork_point: ForkPoint | None = None
    before: list[Message] = field(default_factory=list)


def latest_round(turn: Turn) -> ResponseRound:
    """Return the last response of a turn."""
    return ResponseRound(turn, len(turn.tool_messages) - (1 if turn.waits_for_tools else 0))


def get_round(principal: Principal, response_id: str) -> ResponseRound:
    """Return a response to a message of this person. Raises OpenAIError.

    A token that cannot read obtains only the responses to its own requests.
    """
    matched = _ID.fullmatch(response_id)
    try:
        turn = access.own_turn(principal.person.pk, uuid.UUID(matched[1])) if matched else None
    except NotFoundError:
        turn = None
    start = int(matched[2]) if matched else 0
    can_read = turn is not None and ("read" in principal.scopes or turn.api_token_id == principal.token_id)
    if turn is None or turn.api_token_id is None or not can_read or not _is_start(turn, start):
        raise _no_response(response_id)
    return ResponseRound(turn, start)


def continue_response(principal: Principal, response_id: str) -> Continuation:
    """Return how a request continues this response. Raises OpenAIError, also if it is forgotten.

    It continues the thread if the response is its last one. Otherwise it continues a fork, so that nothing later is
    replaced. A turn that goes on from an earlier round is asked again in the fork.
    """
    previous = get_round(principal, response_id)
    turn = previous.turn
    if forgotten_ids(filter(None, [turn.effective_exchange_id])):
        raise _no_response(response_id)
    waits = turn.waits_for_tools or not previous.is_latest
    own_tools = turn.tool_messages[: previous.start + 1] if waits else []
    tool_use = [Message(role="user", content=turn.message), *map(Message.model_validate, own_tools)] if waits else []
    is_last = turn.thread.head_id == turn.id and previous.is_latest
    if is_last and not (waits and turn.api_token_id != principal.token_id):
        return Continuation(turn.thread, before=tool_use)
    return Continuation(fork_point=ForkPoint(turn, is_included=not waits), before=tool_use)


def _no_response(response_id: str) -> OpenAIError:
    sentence = _("There is no response %(id)s of yours: it was deleted, or another person asked for it.")
    return OpenAIError(sentence % {"id": response_id[:80]}, status=404, code="not_found")


def _is_start(turn: Turn, start: int) -> bool:
    """Return whether a response of the turn began with this many tool messages."""
    if start == latest_round(turn).start:
        return True
    return start < len(turn.tool_messages) and bool(turn.tool_messages[start].get("tool_calls"))
