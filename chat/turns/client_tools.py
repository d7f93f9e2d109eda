"""Turns that wait for the results of a client's tools, and their continuation with these results.

A model that calls tools ends its answer with the calls. The turn is complete then, so that it blocks nothing, but not
remembered. The client's next request repeats the conversation with the results, and the same turn is answered on.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from chat.models import Thread, Turn
from chat.turns.branches import BranchSwitch
from chat.turns.client_matching import ClientConversation, follows_same, is_same, is_same_tool_use, waits_for
from chat.turns.placing import ApiOrigin
from chat.turns.posting import PostedTurn
from chat.turns.restarting import restart


def find_tool_turn(
    threads: Iterable[Thread],
    person_id: uuid.UUID,
    api_token_id: uuid.UUID,
    conversation: ClientConversation,
    *,
    is_known: bool,
) -> Turn | None:
    """Return the last turn of one of these threads if it waits for the tool results of the conversation.

    It can also be running with just these results, if a client repeats its request. `is_known`: the client named the
    thread, or it was found by its end, so that earlier exchanges can be left out.
    """
    heads = [thread.head for thread in threads if thread.head is not None]
    for head in heads:
        is_own = head.author_id == person_id and head.api_token_id == api_token_id
        is_there = is_same(head.message, conversation.message) if is_known else follows_same(head, conversation)
        if is_own and is_there and (waits_for(head, conversation) or _runs(head, conversation)):
            return head
    return None


def answer_on(
    turn: Turn, conversation: ClientConversation, origin: ApiOrigin, *, client_key: uuid.UUID
) -> BranchSwitch:
    """Continue a turn of `find_tool_turn` with the results of the tools. Raises ConflictError.

    The turn gets the key of this request, so that a repetition of it returns the same answer.
    """
    if turn.is_running:
        return BranchSwitch(PostedTurn(turn, is_new=False))
    restarted = restart(
        turn,
        lambda current: current.waits_for_tools,
        is_continued=True,
        answer="",
        reasoning="",
        usage={},
        client_key=client_key,
        tool_messages=list(conversation.tool_messages),
        requested_model=origin.requested_model,
        generation_options=origin.generation_options,
    )
    return BranchSwitch(PostedTurn(restarted, is_new=True))


def _runs(turn: Turn, conversation: ClientConversation) -> bool:
    return turn.is_running and is_same_tool_use(turn.tool_messages, conversation.tool_messages)
