"""The addresses below /v1: chat, embeddings and models, for any client that speaks OpenAI's protocol."""

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
from cato_web.openai_api import answers, models
from cato_web.openai_api.door import door, nothing_here, sent
from cato_web.openai_api.refusals import OpenAIError, no_such_model
from cato_web.openai_api.requests import ChatRequest, EmbeddingRequest, texts_of
from cato_web.openai_api.saying import say
from chat.executors import run_in_db_thread, run_in_recall_thread
from chat.llm import endpoint
from memory.api import batched, embed, embedding_model, estimate_tokens

_MOST_TEXTS = 2048
# So many are embedded before somebody's recall has its turn.
_TOGETHER = 32


@door("ask", "POST")
async def chat_completions(request: HttpRequest, principal: Principal) -> HttpResponseBase:
    """Answer the last message in its thread: with what memory recalls, and to be remembered."""
    asked = sent(request, ChatRequest)
    model = await models.chosen(asked.model, await run_in_db_thread(endpoint.current))
    turn = await run_in_db_thread(say, principal, asked, request.headers, model)
    response: HttpResponseBase
    if asked.stream:
        with_usage = asked.stream_options is not None and asked.stream_options.include_usage
        response = StreamingHttpResponse(
            answers.events(turn, principal.token_id, model=asked.model or models.OWN, with_usage=with_usage),
            content_type="text/event-stream",
            headers={"X-Accel-Buffering": "no"},
        )
    else:
        response = JsonResponse(await answers.whole(turn, principal.token_id))
    response["X-Cato-Thread"] = str(turn.thread_id)
    response["Cache-Control"] = "no-store"
    return response


@door("read", "POST")
async def embeddings(request: HttpRequest, principal: Principal) -> HttpResponse:
    """Vectors of the model that memory is configured with; nothing of the texts is kept."""
    asked = sent(request, EmbeddingRequest)
    if asked.model not in (None, "", models.OWN, embedding_model()):
        raise no_such_model(str(asked.model))
    if asked.encoding_format not in (None, "float", "base64"):
        raise OpenAIError(_("encoding_format is float or base64."), param="encoding_format")
    texts = texts_of(asked, most=_MOST_TEXTS, longest=settings.CATO.chat.max_message_chars)
    vectors = list(chain.from_iterable([await run_in_recall_thread(embed, some) for some in batched(texts, _TOGETHER)]))
    if asked.dimensions not in (None, len(vectors[0])):
        sentence = _("This model's vectors have %(count)s dimensions, no others.") % {"count": len(vectors[0])}
        raise OpenAIError(sentence, param="dimensions")
    tokens = sum(estimate_tokens(text) for text in texts)
    return JsonResponse(
        {
            "object": "list",
            "model": embedding_model(),
            "data": [
                {"object": "embedding", "index": index, "embedding": _written(vector, asked.encoding_format)}
                for index, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }
    )


@door("read", "GET")
async def all_models(request: HttpRequest, principal: Principal) -> HttpResponse:
    """What may be named as a model."""
    return JsonResponse({"object": "list", "data": await models.all_of(await run_in_db_thread(endpoint.current))})


@door("read", "GET")
async def one_model(request: HttpRequest, principal: Principal, name: str) -> HttpResponse:
    """One of these."""
    rows = await models.all_of(await run_in_db_thread(endpoint.current))
    found = next((row for row in rows if row["id"] == name), None)
    if found is None:
        raise no_such_model(name)
    return JsonResponse(found)


@csrf_exempt
@login_not_required
def nothing(request: HttpRequest, rest: str) -> HttpResponse:
    """What else OpenAI has at /v1 is not here."""
    return nothing_here(request.path).response


def _written(vector: Any, encoding: str | None) -> str | list[float]:
    if encoding == "base64":
        return base64.b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()
    return [float(value) for value in vector]
