"""Operations: post a message and receive the answer, as JSON or as a stream of events.

The database is used before and after the answer; no connection is held while it streams.
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
from cato_web.api.auth import ASK, ApiRequest, current_user, resolve_space
from cato_web.api.errors import FIND, responses
from cato_web.api.fields import Text
from chat import access, services
from chat.answers import runner
from chat.answers.tail import tail_answer
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
        description="Repeating a request with the same key returns the same turn.",
    ),
]
_EVENT_DESCRIPTION = (
    "With `stream`: `turn` with the new turn, `delta` with `text` for each part of the answer, `error` if it failed, "
    "and `done` with the complete turn, its state, usage and sources. The data of each event is JSON."
)
_EVENT_SCHEMA = {
    "type": "object",
    "description": _EVENT_DESCRIPTION,
    "properties": {"event": {"enum": ["turn", "delta", "error", "done"]}, "data": {"type": "string"}},
    "required": ["event", "data"],
}
_STREAM_RESPONSE = {"responses": {200: {"content": {"text/event-stream": {"schema": _EVENT_SCHEMA}}}}}


@router.post(
    "/threads/{uuid:thread_id}/ask",
    auth=ASK,
    response=responses(schemas.Turn, *FIND, 409),
    openapi_extra=_STREAM_RESPONSE,
)
def ask(
    request: ApiRequest, thread_id: uuid.UUID, body: schemas.AskRequest, idempotency_key: Key = None
) -> StreamingHttpResponse:
    """Post a message in a thread. A failed answer has `state` failed and an `error`; the message is kept."""
    return _post_message(request, body, idempotency_key, access.get_thread(current_user(request).pk, thread_id))


@router.post("/ask", auth=ASK, response=responses(schemas.Turn, *FIND, 409), openapi_extra=_STREAM_RESPONSE)
def ask_anew(
    request: ApiRequest, body: schemas.NewThreadAskRequest, idempotency_key: Key = None
) -> StreamingHttpResponse:
    """Create a thread with a message. The response contains the thread's id for further messages."""
    return _post_message(request, body, idempotency_key, None)


def _post_message(
    request: ApiRequest, body: schemas.AskRequest, key: str | None, thread: Thread | None
) -> StreamingHttpResponse:
    person_id, origin = current_user(request).pk, ApiOrigin(request.auth.token_id)
    count_message(person_id)
    # Per user, so that two users of one thread can use the same key.
    client_key = uuid.uuid5(person_id, key) if key else uuid.uuid4()
    if thread is not None:
        posted = services.post_message(
            thread, author_id=person_id, message=body.message, client_key=client_key, origin=origin
        )
    else:
        posted = services.create_thread_with_message(
            person_id,
            message=body.message,
            client_key=client_key,
            space=resolve_space(request, getattr(body, "space", None)),
            is_remembered=getattr(body, "is_remembered", True),
            origin=origin,
        )
    runner.publish_and_start(posted)
    turn = _load_turn(person_id, posted.turn.thread_id, posted.turn.id)
    can_receive = partial(access.can_receive, person_id, posted.turn.thread_id, origin.api_token_id)
    if not connection.in_atomic_block:
        connection.close()  # otherwise this thread would hold it until the response ends
    if body.stream:
        return _response(_events(person_id, turn, can_receive), "text/event-stream")
    return _response(_completed_json(person_id, turn, can_receive), "application/json")


def _response(chunks: AsyncIterator[str], media_type: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(chunks, content_type=f"{media_type}; charset=utf-8")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # reverse proxies must not buffer events
    return response


async def _completed_json(
    person_id: uuid.UUID, turn: schemas.Turn, can_receive: Callable[[], bool]
) -> AsyncIterator[str]:
    """Yield the turn once its answer has ended. A client that disconnects does not stop the answer."""
    with suppress(NotFoundError):  # access was lost: the turn is returned without its answer
        async for _text in tail_answer(turn.id, can_receive):
            pass
    yield (await _reload_turn(person_id, turn, can_receive)).model_dump_json()


async def _events(person_id: uuid.UUID, turn: schemas.Turn, can_receive: Callable[[], bool]) -> AsyncIterator[str]:
    yield _event("turn", turn)
    with suppress(NotFoundError):
        async for text in tail_answer(turn.id, can_receive):
            yield _event("delta", {"text": text})
    completed = await _reload_turn(person_id, turn, can_receive)
    if completed.error is not None:
        yield _event("error", completed.error)
    yield _event("done", completed)


async def _reload_turn(person_id: uuid.UUID, turn: schemas.Turn, can_receive: Callable[[], bool]) -> schemas.Turn:
    """Return the current state of the turn, without an answer if it was withdrawn or access was lost."""
    try:
        if await run_in_db_thread(can_receive):
            return await run_in_db_thread(_load_turn, person_id, turn.thread_id, turn.id)
    except NotFoundError:
        pass
    return turn.model_copy(update={"state": "withdrawn", "answer": ""})


def _load_turn(person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID) -> schemas.Turn:
    turn: Turn = access.get_turn(person_id, thread_id, turn_id)
    return serializers.serialize_turns(turn.thread, [turn])[0]


def _event(name: str, data: BaseModel | dict[str, str]) -> str:
    """Format one server-sent event; JSON contains no line breaks."""
    text = data.model_dump_json() if isinstance(data, BaseModel) else json.dumps(data)
    return f"event: {name}\ndata: {text}\n\n"
