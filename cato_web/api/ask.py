"""Operations: asking in a thread and hearing the answer, whole or as it is said.

The database is asked before the answer begins and after it ended; while it is written no connection is held.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial
from typing import Annotated

from django.db import connection
from django.http import StreamingHttpResponse
from ninja import Header, Router
from pydantic import BaseModel

from cato_web.api import schemas, serializers
from cato_web.api.responses import FIND, responses
from cato_web.api.auth import ASK, ApiRequest, current_user, resolve_space
from cato_web.api.fields import Text
from chat import access, services
from chat.responses import runner
from chat.responses.tail import tail_answer
from chat.executors import run_in_db_thread
from chat.models import Thread, Turn
from chat.services import ApiOrigin
from memory.api import NotFoundError, count_message

router = Router(tags=["asking"])
Key = Annotated[
    Text | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=200,
        description="The same key again asks nothing new and gives the same turn.",
    ),
]
_EVENTS = (
    "With `stream`: `turn` with the turn as it begins, `delta` with `text` for each piece of the answer, `error` where "
    "it failed, and `done` with the whole turn, its state, usage and sources. Each event's data is JSON."
)
_EVENT = {
    "type": "object",
    "description": _EVENTS,
    "properties": {"event": {"enum": ["turn", "delta", "error", "done"]}, "data": {"type": "string"}},
    "required": ["event", "data"],
}
_BOTH = {"responses": {200: {"content": {"text/event-stream": {"schema": _EVENT}}}}}


@router.post("/threads/{uuid:thread_id}/ask", auth=ASK, response=responses(schemas.Turn, *FIND, 409), openapi_extra=_BOTH)
def ask(
    request: ApiRequest, thread_id: uuid.UUID, question: schemas.AskRequest, idempotency_key: Key = None
) -> StreamingHttpResponse:
    """Say something in a thread. An answer that failed has `state` failed and an `error`; the message is kept."""
    return _asked(request, question, idempotency_key, access.get_thread(current_user(request).pk, thread_id))


@router.post("/ask", auth=ASK, response=responses(schemas.Turn, *FIND, 409), openapi_extra=_BOTH)
def ask_anew(
    request: ApiRequest, question: schemas.NewThreadAskRequest, idempotency_key: Key = None
) -> StreamingHttpResponse:
    """Begin a thread with a question. The answer names the thread, in which one can go on."""
    return _asked(request, question, idempotency_key, None)


def _asked(
    request: ApiRequest, question: schemas.AskRequest, key: str | None, thread: Thread | None
) -> StreamingHttpResponse:
    person_id, origin = current_user(request).pk, ApiOrigin(request.auth.token_id)
    count_message(person_id)
    # One person's keys never meet another's, though both write in the same thread.
    client_key = uuid.uuid5(person_id, key) if key else uuid.uuid4()
    if thread is not None:
        asked = services.post_message(
            thread, author_id=person_id, message=question.message, client_key=client_key, origin=origin
        )
    else:
        asked = services.create_thread_with_message(
            person_id,
            message=question.message,
            client_key=client_key,
            space=resolve_space(request, getattr(question, "space", None)),
            is_remembered=getattr(question, "is_remembered", True),
            origin=origin,
        )
    runner.publish_and_start(asked)
    begun = _turn_of(person_id, asked.turn.thread_id, asked.turn.id)
    may_receive = partial(access.may_receive, person_id, asked.turn.thread_id, origin.api_token_id)
    _let_go()
    if question.stream:
        return _response(_events(person_id, begun, may_receive), "text/event-stream")
    return _response(_whole(person_id, begun, may_receive), "application/json")


def _let_go() -> None:
    """Give this thread's connection back: what follows is the event loop's, and it would be held until the last word."""
    if not connection.in_atomic_block:
        connection.close()


def _response(pieces: AsyncIterator[str], kind: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(pieces, content_type=f"{kind}; charset=utf-8")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # a proxy in front must not keep what is said until it is complete
    return response


async def _whole(person_id: uuid.UUID, begun: schemas.Turn, may_receive: Callable[[], bool]) -> AsyncIterator[str]:
    """The turn when its answer ended. A client that does not wait for it stops nothing."""
    with suppress(NotFoundError):  # access was lost; the turn as it is returned then carries no answer
        async for _piece in tail_answer(begun.id, may_receive):
            pass
    yield (await _ended(person_id, begun, may_receive)).model_dump_json()


async def _events(person_id: uuid.UUID, begun: schemas.Turn, may_receive: Callable[[], bool]) -> AsyncIterator[str]:
    yield _event("turn", begun)
    with suppress(NotFoundError):
        async for piece in tail_answer(begun.id, may_receive):
            yield _event("delta", {"text": piece})
    ended = await _ended(person_id, begun, may_receive)
    if ended.error is not None:
        yield _event("error", ended.error)
    yield _event("done", ended)


async def _ended(person_id: uuid.UUID, begun: schemas.Turn, may_receive: Callable[[], bool]) -> schemas.Turn:
    """The turn as its row is now; without an answer where it was withdrawn, or access to it was lost meanwhile."""
    try:
        if await run_in_db_thread(may_receive):
            return await run_in_db_thread(_turn_of, person_id, begun.thread_id, begun.id)
    except NotFoundError:
        pass
    return begun.model_copy(update={"state": "withdrawn", "answer": ""})


def _turn_of(person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID) -> schemas.Turn:
    turn: Turn = access.get_turn(person_id, thread_id, turn_id)
    return serializers.serialize_turns(turn.thread, [turn])[0]


def _event(name: str, data: BaseModel | dict[str, str]) -> str:
    """One server-sent event; JSON has no line ends of its own."""
    text = data.model_dump_json() if isinstance(data, BaseModel) else json.dumps(data)
    return f"event: {name}\ndata: {text}\n\n"
