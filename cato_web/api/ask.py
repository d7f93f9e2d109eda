"""Operations: post a message and receive the answer, as JSON or as a stream of events.

The database is used before and after the answer; no connection is held while it streams.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial

from django.core.files.base import ContentFile
from django.db import connection
from django.http import StreamingHttpResponse
from django.utils.translation import gettext as _
from ninja import Router
from pydantic import BaseModel

from cato_web.api import serializers, thread_schemas
from cato_web.api.auth import ASK, ApiRequest, current_user, resolve_space
from cato_web.api.errors import FIND, responses
from cato_web.api.fields import Key, decode_image
from cato_web.idempotency import message_key
from chat import access, attachments, services
from chat.answers import runner
from chat.answers.tail import tail_answer
from chat.executors import run_in_db_thread
from chat.llm import endpoint
from chat.llm.choices import offered_choices, read_model_lists
from chat.llm.endpoint import ModelEndpoint
from chat.llm.model_list import ModelList
from chat.models import Turn
from chat.services import ApiOrigin, PostedTurn
from memory.api import InvalidInputError, NotFoundError, count_message

router = Router(tags=["asking"])
_DEFAULT_MODEL = "cato"  # as /v1 calls the thread's model
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
    response=responses(thread_schemas.Turn, *FIND, 409),
    openapi_extra=_STREAM_RESPONSE,
)
def ask(
    request: ApiRequest, thread_id: uuid.UUID, body: thread_schemas.AskRequest, idempotency_key: Key = None
) -> StreamingHttpResponse:
    """Post a message in a thread. A failed answer has `state` failed and an `error`; the message is kept."""
    person_id = current_user(request).pk
    thread = access.get_thread(person_id, thread_id)
    return _answer(request, body, idempotency_key, partial(services.post_message, thread.id, author_id=person_id))


@router.post("/ask", auth=ASK, response=responses(thread_schemas.Turn, *FIND, 409), openapi_extra=_STREAM_RESPONSE)
def ask_anew(
    request: ApiRequest, body: thread_schemas.NewThreadAskRequest, idempotency_key: Key = None
) -> StreamingHttpResponse:
    """Create a thread with a message. The response contains the thread's id for further messages."""
    post = partial(
        services.create_thread_with_message,
        current_user(request).pk,
        space=resolve_space(request, body.space),
        is_remembered=body.is_remembered,
    )
    return _answer(request, body, idempotency_key, post)


@router.post("/threads/{uuid:thread_id}/stop", auth=ASK, response=responses(thread_schemas.StopResult, *FIND))
def stop(request: ApiRequest, thread_id: uuid.UUID) -> thread_schemas.StopResult:
    """Stop the running answer of a thread that the user can read. What was received so far is kept."""
    person_id = current_user(request).pk
    thread = access.get_thread(person_id, thread_id)
    turn = thread.turns.filter(state__in=Turn.RUNNING_STATES).first()
    if turn is None or not runner.stop(turn, by=person_id):
        return thread_schemas.StopResult(turn_id=None)
    return thread_schemas.StopResult(turn_id=turn.id)


def _answer(
    request: ApiRequest, body: thread_schemas.AskRequest, key: str | None, post: Callable[..., PostedTurn]
) -> StreamingHttpResponse:
    """Call `post` with the message, start its answer and return it."""
    person_id = current_user(request).pk
    origin = ApiOrigin(request.auth.token_id, _requested_model(body.model))
    pictures = [decode_image(address) for address in body.images]
    content = body.model_dump(mode="json", exclude={"stream"})
    count_message(person_id)
    stored = [
        attachments.store_image(ContentFile(picture, name=_("Picture")), owner_id=person_id).id for picture in pictures
    ]
    with message_key(request.auth.token_id, key, path=request.path, content=content) as client_key:
        posted = post(message=body.message, client_key=client_key, origin=origin, attachments=stored)
    runner.publish_and_start(posted)
    turn = _load_turn(person_id, posted.turn.thread_id, posted.turn.id)
    can_receive = partial(access.can_receive, person_id, posted.turn.thread_id, origin.api_token_id)
    if not connection.in_atomic_block:
        connection.close()  # otherwise this thread would hold it until the response ends
    if body.stream:
        return _response(_events(person_id, turn, can_receive), "text/event-stream")
    return _response(_completed_json(person_id, turn, can_receive), "application/json")


def _requested_model(name: str | None) -> str:
    """Return the model to request, "" for the thread's. Raises InvalidInputError for one that is not offered."""
    among = endpoint.list_endpoints()
    if name is None or not among or name in (_DEFAULT_MODEL, "" if among[0].name else among[0].model):
        return ""
    lists = read_model_lists(among)
    # An endpoint without a list accepts any name.
    if name not in offered_choices(among, lists) and not _is_unlisted(name, among, lists):
        sentence = _("There is no model %(name)s here; /v1/models lists what there is.")
        raise InvalidInputError(sentence % {"name": name})
    return name


def _is_unlisted(name: str, among: Sequence[ModelEndpoint], lists: Sequence[ModelList]) -> bool:
    """Return whether the name is one of an endpoint whose models are not known."""
    prefix, slash, _rest = name.partition("/")
    further = next((place for place, one in enumerate(among) if slash and one.name == prefix), None)
    return not lists[further or 0].names


def _response(chunks: AsyncIterator[str], media_type: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(chunks, content_type=f"{media_type}; charset=utf-8")
    response["X-Accel-Buffering"] = "no"  # reverse proxies must not buffer events
    return response


async def _completed_json(
    person_id: uuid.UUID, turn: thread_schemas.Turn, can_receive: Callable[[], bool]
) -> AsyncIterator[str]:
    """Yield the turn once its answer has ended. A client that disconnects does not stop the answer."""
    with suppress(NotFoundError):  # access was lost: the turn is returned without its answer
        async for _text in tail_answer(turn.id, can_receive):
            pass
    yield (await _reload_turn(person_id, turn, can_receive)).model_dump_json()


async def _events(
    person_id: uuid.UUID, turn: thread_schemas.Turn, can_receive: Callable[[], bool]
) -> AsyncIterator[str]:
    yield _event("turn", turn)
    with suppress(NotFoundError):
        async for text in tail_answer(turn.id, can_receive):
            yield _event("delta", {"text": text})
    completed = await _reload_turn(person_id, turn, can_receive)
    if completed.error is not None:
        yield _event("error", completed.error)
    yield _event("done", completed)


async def _reload_turn(
    person_id: uuid.UUID, turn: thread_schemas.Turn, can_receive: Callable[[], bool]
) -> thread_schemas.Turn:
    """Return the current state of the turn, without an answer if it was withdrawn or access was lost."""
    try:
        if await run_in_db_thread(can_receive):
            return await run_in_db_thread(_load_turn, person_id, turn.thread_id, turn.id)
    except NotFoundError:
        pass
    return turn.model_copy(update={"state": "withdrawn", "answer": ""})


def _load_turn(person_id: uuid.UUID, thread_id: uuid.UUID, turn_id: uuid.UUID) -> thread_schemas.Turn:
    turn: Turn = access.get_turn(person_id, thread_id, turn_id)
    return serializers.serialize_turns(turn.thread, [turn])[0]


def _event(name: str, data: BaseModel | dict[str, str]) -> str:
    """Format one server-sent event; JSON contains no line breaks."""
    text = data.model_dump_json() if isinstance(data, BaseModel) else json.dumps(data)
    return f"event: {name}\ndata: {text}\n\n"
