"""Endpoints of /v1: chat completions, embeddings and models."""

from __future__ import annotations

import base64
from itertools import chain
from typing import Any

import numpy as np
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt

from cato_web.api_auth import Principal
from cato_web.openai_api import models, responses
from cato_web.openai_api.auth import openai_endpoint, parse_body, unknown_path
from cato_web.openai_api.conversations import submit
from cato_web.openai_api.errors import OpenAIError, no_such_model
from cato_web.openai_api.requests import ChatRequest, EmbeddingRequest, input_texts
from chat.executors import run_in_db_thread, run_in_recall_thread
from chat.llm import endpoint
from memory.api import batched, embed, embedding_model, estimate_tokens

_MAX_TEXTS = 2048
# Embedding shares its threads with recall, which gets its turn between batches.
_BATCH_SIZE = 32


@openai_endpoint("ask", "POST")
async def chat_completions(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    """Answer the last message in its thread, with recall and memory as in the browser."""
    body = parse_body(request, ChatRequest)
    model = await models.resolve_model(body.model, await run_in_db_thread(endpoint.current))
    turn = await run_in_db_thread(submit, principal, body, request.headers, model)
    response: HttpResponseBase
    if body.stream:
        with_usage = body.stream_options is not None and body.stream_options.include_usage
        response = StreamingHttpResponse(
            responses.completion_chunks(
                turn, principal.token_id, model=body.model or models.DEFAULT_MODEL, with_usage=with_usage
            ),
            content_type="text/event-stream",
            headers={"X-Accel-Buffering": "no"},
        )
    else:
        response = JsonResponse(await responses.completion(turn, principal.token_id))
    response["X-Cato-Thread"] = str(turn.thread_id)
    response["Cache-Control"] = "no-store"
    return response


@openai_endpoint("read", "POST")
async def embeddings(request: HttpRequest, principal: Principal) -> HttpResponse:
    """Embed texts with the configured embedding model; nothing is stored."""
    body = parse_body(request, EmbeddingRequest)
    if body.model not in (None, "", models.DEFAULT_MODEL, embedding_model()):
        raise no_such_model(str(body.model))
    if body.encoding_format not in (None, "float", "base64"):
        raise OpenAIError(_("encoding_format is float or base64."), param="encoding_format")
    texts = input_texts(body, limit=_MAX_TEXTS, max_length=settings.CATO.chat.max_message_chars)
    vectors = list(
        chain.from_iterable([await run_in_recall_thread(embed, batch) for batch in batched(texts, _BATCH_SIZE)])
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


@openai_endpoint("read", "GET")
async def all_models(request: HttpRequest, principal: Principal) -> HttpResponse:
    """List the models."""
    return JsonResponse(
        {"object": "list", "data": await models.model_objects(await run_in_db_thread(endpoint.current))}
    )


@openai_endpoint("read", "GET")
async def one_model(request: HttpRequest, principal: Principal, name: str) -> HttpResponse:
    """Return one model."""
    rows = await models.model_objects(await run_in_db_thread(endpoint.current))
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
