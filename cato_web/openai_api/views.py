"""Endpoints of /v1: chat completions, responses, embeddings and models."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from cato_web.api_auth import Principal, check_token
from cato_web.openai_api import background, models, response_objects, responses
from cato_web.openai_api.auth import openai_endpoint, parse_body, unknown_path
from cato_web.openai_api.conversations import load_result, submit
from cato_web.openai_api.errors import OpenAIError, no_such_model
from cato_web.openai_api.requests import ChatRequest, EmbeddingRequest, input_texts, storable
from cato_web.openai_api.response_requests import ResponseRequest, rename_param, to_chat_request
from cato_web.openai_api.response_threads import (
    Continuation,
    ResponseRound,
    continue_response,
    get_round,
    latest_round,
)
from chat.errors import DataPolicyError
from chat.executors import run_in_db_thread, run_in_recall_thread
from chat.llm import endpoint
from chat.llm.choices import refusal
from chat.llm.endpoint import ChosenModel
from chat.llm.events import StreamChunk
from chat.llm.usage_counts import UsageMeter
from chat.usage.counting import Purpose, count_usage
from chat.usage.limits import check_limits
from memory.api import batched, count_message, embed, embedding_model, estimate_tokens, personal_space

_MAX_TEXTS = 2048
# Embedding shares its threads with recall, which gets its turn between batches.
_BATCH_SIZE = 32


@openai_endpoint("POST", "ask")
async def chat_completions(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    """Answer the last message in its thread, with recall and memory as in the browser."""
    body = parse_body(request, ChatRequest)
    model = await models.resolve_model(body.model, await run_in_db_thread(endpoint.list_endpoints))
    if background.is_background(body, request.headers):
        await run_in_db_thread(count_message, principal.person.pk)
        await run_in_db_thread(_check_limits, principal)
        chosen = await run_in_db_thread(_find_permitted, principal, model or "")
        return await _background_response(principal, chosen, body, model or "")
    turn = await run_in_db_thread(partial(submit, principal, body, request, model, sent=body))
    response: HttpResponseBase
    if body.stream:
        # A client with a key can repeat the request and get the answer.
        is_stopped = "Idempotency-Key" not in request.headers
        await responses.wait_until_begun(turn, principal.token_id, is_stopped_when_closed=is_stopped)
        events = responses.completion_chunks(
            turn,
            principal.token_id,
            model=body.model or models.DEFAULT_MODEL,
            with_usage=_wants_usage(body),
            is_stopped_when_closed=is_stopped,
        )
        response = _event_stream(events)
    else:
        response = JsonResponse(await responses.completion(turn, principal.token_id))
    response["X-Cato-Thread"] = str(turn.thread_id)
    return response


async def _background_response(
    principal: Principal, chosen: ChosenModel | None, body: ChatRequest, model: str
) -> HttpResponseBase:
    background.check_request(body)
    chunks = _counted(principal, chosen, body)
    name = model or models.DEFAULT_MODEL
    if body.stream:
        chunks = await background.wait_until_begun(chunks)
        return _event_stream(background.completion_chunks(chunks, model=name, with_usage=_wants_usage(body)))
    return JsonResponse(await background.completion(chunks, model=name))


def _find_permitted(principal: Principal, model: str) -> ChosenModel | None:
    """Return what answers a background request, whose texts are the person's own. Raises DataPolicyError."""
    chosen = endpoint.find(model)
    if chosen is not None and (reason := refusal(chosen.endpoint, personal_space(principal.person.pk))):
        raise DataPolicyError(reason)
    return chosen


def _check_limits(principal: Principal) -> None:
    """Raise UsageLimitError if the person or the token has reached a limit of usage."""
    check_limits(principal.person.pk, space=None, api_token_id=principal.token_id)


async def _counted(
    principal: Principal, chosen: ChosenModel | None, body: ChatRequest
) -> AsyncGenerator[StreamChunk, None]:
    """Stream the answer to a background request, and count what it used, also if it fails or the client leaves."""
    meter = UsageMeter()
    count = partial(
        count_usage, purpose=Purpose.BACKGROUND, person_id=principal.person.pk, api_token_id=principal.token_id
    )
    try:
        model_endpoint, model = (chosen.endpoint, chosen.model) if chosen else (None, "")
        answer = background.answer(model_endpoint, body, model, meter)
        check = partial(run_in_db_thread, check_token, principal.token_id)
        async with aclosing(background.check_regularly(answer, check)) as chunks:
            async for chunk in chunks:
                yield chunk
    finally:
        # A client that leaves cancels this task, which must not leave the usage out.
        await asyncio.shield(run_in_db_thread(count, meter.total()))


@openai_endpoint("POST", "ask")
async def create_response(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    """Answer the input in its thread, as a chat completion does."""
    body = parse_body(request, ResponseRequest)
    model = await models.resolve_model(body.model, await run_in_db_thread(endpoint.list_endpoints))
    echo = {
        "previous_response_id": body.previous_response_id,
        "instructions": body.instructions,
        "metadata": storable(body.metadata or {}, "metadata"),
        "store": body.store is not False,
    }
    begun = await run_in_db_thread(_begin_response, principal, body, request, model)
    response: HttpResponseBase
    if body.stream:
        is_stopped = "Idempotency-Key" not in request.headers
        await responses.wait_until_begun(begun.turn, principal.token_id, is_stopped_when_closed=is_stopped)
        events = response_objects.response_events(
            begun, principal.token_id, echo=echo, is_stopped_when_closed=is_stopped
        )
        response = _event_stream(events)
    else:
        response = JsonResponse(await response_objects.wait_for_response(begun, principal.token_id, echo=echo))
    response["X-Cato-Thread"] = str(begun.turn.thread_id)
    return response


@openai_endpoint("GET", "read", "ask")
async def one_response(request: HttpRequest, principal: Principal, response_id: str) -> HttpResponse:
    """Return a response to one's own message, also while it is in progress."""
    found = await run_in_db_thread(get_round, principal, response_id)
    result = await run_in_db_thread(load_result, principal.person.pk, found.turn)
    return JsonResponse(response_objects.saved_response(found, result))


def _begin_response(
    principal: Principal, body: ResponseRequest, request: HttpRequest, model: str | None
) -> ResponseRound:
    """Post the input in its thread. Raises OpenAIError and CatoError."""
    if request.headers.get("X-Cato-Background", "").lower() == "yes":
        raise OpenAIError(_("Send background requests to /v1/chat/completions."), param="X-Cato-Background")
    continuation = Continuation()
    if body.previous_response_id is not None:
        if request.headers.get("X-Cato-Thread"):
            sentence = _("Send previous_response_id or X-Cato-Thread, not both: each names a thread.")
            raise OpenAIError(sentence, param="previous_response_id")
        continuation = continue_response(principal, body.previous_response_id)
    try:
        chat_request = to_chat_request(body, before=continuation.before)
        turn = submit(
            principal,
            chat_request,
            request,
            model,
            sent=body,
            thread=continuation.thread,
            fork_point=continuation.fork_point,
            is_stored=body.store is not False,
        )
    except OpenAIError as error:
        raise rename_param(error) from error
    return latest_round(turn)


def _event_stream(events: AsyncIterator[bytes]) -> StreamingHttpResponse:
    """Return events as they come; reverse proxies must not buffer them."""
    return StreamingHttpResponse(events, content_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _wants_usage(body: ChatRequest) -> bool:
    return body.stream_options is not None and body.stream_options.include_usage


@openai_endpoint("POST", "read")
async def embeddings(request: HttpRequest, principal: Principal) -> HttpResponse:
    """Embed texts with the configured embedding model; nothing is stored."""
    body = parse_body(request, EmbeddingRequest)
    if body.model not in (None, "", models.DEFAULT_MODEL, embedding_model()):
        raise no_such_model(str(body.model))
    if body.encoding_format not in (None, "float", "base64"):
        raise OpenAIError(_("encoding_format is float or base64."), param="encoding_format")
    texts = input_texts(body, limit=_MAX_TEXTS, max_length=settings.CATO.chat.max_message_chars)
    space = await run_in_db_thread(personal_space, principal.person.pk)
    vectors = list(
        chain.from_iterable(
            [await run_in_recall_thread(partial(embed, space=space), batch) for batch in batched(texts, _BATCH_SIZE)]
        )
    )
    if body.dimensions not in (None, len(vectors[0])):
        sentence = _("This model's vectors have %(count)s dimensions, no others.") % {"count": len(vectors[0])}
        raise OpenAIError(sentence, param="dimensions")
    tokens = sum(estimate_tokens(text) for text in texts)
    return JsonResponse(
        {
            "object": "list",
            "model": embedding_model(),
            "data": [
                {"object": "embedding", "index": index, "embedding": _encode_vector(vector, body.encoding_format)}
                for index, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


@openai_endpoint("GET", "read", "ask")
async def all_models(request: HttpRequest, principal: Principal) -> HttpResponse:
    """List the models."""
    return JsonResponse(
        {"object": "list", "data": await models.model_objects(await run_in_db_thread(endpoint.list_endpoints))}
    )


@openai_endpoint("GET", "read", "ask")
async def one_model(request: HttpRequest, principal: Principal, name: str) -> HttpResponse:
    """Return one model."""
    rows = await models.model_objects(await run_in_db_thread(endpoint.list_endpoints))
    turn = next((row for row in rows if row["id"] == name), None)
    if turn is None:
        raise no_such_model(name)
    return JsonResponse(turn)


@csrf_exempt
@login_not_required
def unsupported(request: HttpRequest, rest: str) -> HttpResponse:
    """Respond with 404 to other paths of OpenAI's API."""
    return unknown_path(request.path).response


def _encode_vector(vector: Any, encoding: str | None) -> str | list[float]:
    if encoding == "base64":
        return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()
    return [float(value) for value in vector]
