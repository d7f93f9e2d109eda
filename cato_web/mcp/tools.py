"""The registry of tools: what each is called, which scope it needs, and the tools that write and ask."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.utils.translation import gettext as _
from pydantic import BaseModel

from cato_web.mcp import arguments, reading, results
from cato_web.mcp.caller import UNTRUSTED_NOTE, Caller, parse_id
from chat import access, services
from chat.answers import runner
from chat.answers.tail import tail_answer
from chat.instructions.applying import applied_to
from chat.models import Turn
from chat.search.arguments import Arguments
from chat.services import ApiOrigin
from memory import api as memory
from memory.api import Exchange, NotFoundError, audience_text, count_message

# Seconds. Clients give up after a minute; the answer goes on, and get_thread reads it later.
_MAX_WAIT = 45.0


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: it runs in a thread with its caller and arguments."""

    title: str
    scope: str
    arguments: type[Arguments]
    result: type[BaseModel]
    run: Callable[[Caller, Any], BaseModel]
    changes: bool = False
    destroys: bool = False
    is_idempotent: bool = False


def add_memory(caller: Caller, asked: arguments.AddMemory) -> results.AddResult:
    """Store a text as a note in the personal space or the named one.

    Raises NotFoundError, InvalidInputError and VectorStoreDisabledError.
    """
    space = caller.space(asked.space)
    exchanges = memory.add_note(asked.text, space=space, owner_id=caller.person_id, source=Exchange.Source.API)
    return results.AddResult(exchange_ids=[exchange.id for exchange in exchanges], audience=audience_text(space))


def forget_memory(caller: Caller, asked: arguments.ForgetMemory) -> results.ForgetResult:
    """Forget one exchange. Raises NotFoundError, also if the user may not forget it."""
    exchange_id = parse_id(asked.exchange_id)
    exchange = services.forget_exchange(caller.person_id, exchange_id, is_administrator=caller.is_administrator)
    return results.ForgetResult(exchange_id=exchange.id, said=_("Forgotten. Nobody can recall or find it any more."))


def ask(caller: Caller, asked: arguments.Ask) -> results.AnswerResult:
    """Post a message in a thread, or in a new one, and start its answer; return the turn as it is.

    Raises NotFoundError, RateLimitedError and the errors of posting.
    """
    assert caller.token_id is not None  # noqa: S101  (only callers with a token have the scope)
    origin, client_key = ApiOrigin(caller.token_id), uuid.uuid4()
    count_message(caller.person_id)
    if asked.thread_id:
        posted = services.post_message(
            parse_id(asked.thread_id),
            author_id=caller.person_id,
            message=asked.message,
            client_key=client_key,
            origin=origin,
        )
    else:
        posted = services.create_thread_with_message(
            caller.person_id,
            message=asked.message,
            client_key=client_key,
            space=caller.space(asked.space),
            origin=origin,
        )
    runner.publish_and_start(posted)
    return _answer_result(posted.turn)


async def wait_for_answer(caller: Caller, begun: results.AnswerResult, run: Callable[..., Any]) -> results.AnswerResult:
    """Return the answer that `ask` started once it has ended, or its beginning after 45 seconds.

    `run` runs a function in a thread. Raises NotFoundError if the person loses access meanwhile.
    """
    can_receive = partial(access.can_receive, caller.person_id, begun.thread_id, caller.token_id)

    async def read_to_end() -> None:
        async for _text in tail_answer(begun.turn_id, can_receive):
            pass

    with suppress(TimeoutError):
        await asyncio.wait_for(read_to_end(), _MAX_WAIT)
    result: results.AnswerResult = await run(_read_answer, caller, begun, can_receive)
    return result


def _read_answer(caller: Caller, begun: results.AnswerResult, can_receive: Callable[[], bool]) -> results.AnswerResult:
    if not can_receive():
        raise NotFoundError
    return _answer_result(access.get_turn(caller.person_id, begun.thread_id, begun.turn_id))


def _answer_result(turn: Turn) -> results.AnswerResult:
    return results.AnswerResult(
        note=UNTRUSTED_NOTE,
        thread_id=turn.thread_id,
        turn_id=turn.id,
        state=turn.state,
        answer=turn.answer,
        error=turn.error,
        standing_instructions=[instruction.text for instruction in applied_to(turn.thread, [turn]).values()],
    )


TOOLS: dict[str, Tool] = {
    "search_memory": Tool("Search memory", "read", arguments.SearchMemory, results.SearchResult, reading.search_memory),
    "get_thread": Tool("Read a conversation", "read", arguments.GetThread, results.ThreadResult, reading.get_thread),
    "read_document": Tool(
        "Read a document", "read", arguments.ReadDocument, results.DocumentResult, reading.read_document
    ),
    "list_spaces": Tool("List spaces", "read", arguments.ListSpaces, results.SpacesResult, reading.list_spaces),
    "list_threads": Tool(
        "List conversations", "read", arguments.ListThreads, results.ThreadsResult, reading.list_threads
    ),
    "list_documents": Tool(
        "List documents", "read", arguments.ListDocuments, results.DocumentsResult, reading.list_documents
    ),
    "list_knowledge": Tool(
        "List what is known", "read", arguments.ListKnowledge, results.KnowledgeResult, reading.list_knowledge
    ),
    "add_memory": Tool("Remember", "write", arguments.AddMemory, results.AddResult, add_memory, changes=True),
    "forget_memory": Tool(
        "Forget",
        "write",
        arguments.ForgetMemory,
        results.ForgetResult,
        forget_memory,
        changes=True,
        destroys=True,
        is_idempotent=True,
    ),
    "ask": Tool("Ask the model", "ask", arguments.Ask, results.AnswerResult, ask, changes=True),
}
