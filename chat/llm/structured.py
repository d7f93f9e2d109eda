"""Requests JSON that follows a schema, also from endpoints without structured output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from chat.errors import ModelError
from chat.llm import client, failures
from chat.llm.client import NO_OPTIONS, Message
from chat.llm.endpoint import ModelEndpoint
from chat.llm.usage_counts import UsageMeter

_MAX_CHARACTERS = 40_000
# Models that rejected a request with a schema and accepted it without; they are tried again after a restart.
_without_schema: set[tuple[ModelEndpoint, str]] = set()


@dataclass(frozen=True, slots=True)
class Completion:
    """The text of a reply, and the tokens that the request and the reply cost, estimated if the endpoint does not tell."""

    text: str
    tokens: int


async def complete_json(
    endpoint: ModelEndpoint,
    messages: Sequence[Message],
    *,
    schema: Mapping[str, Any],
    model: str = "",
    is_stopped: Callable[[], bool],
    meter: UsageMeter,
) -> Completion:
    """Return a reply that should be JSON of this schema; what has to be checked. Raises ModelError.

    `schema` is the field `json_schema` of OpenAI's `response_format`. If `is_stopped` becomes true, the reply is cut off.
    `meter` counts what the requests use, also those that fail.
    """
    if (endpoint, model) in _without_schema:
        return await _complete(endpoint, messages, model, is_stopped, meter)
    options = {"response_format": {"type": "json_schema", "json_schema": schema}}
    try:
        return await _complete(endpoint, messages, model, is_stopped, meter, options)
    except ModelError as error:
        # Endpoints do not report in advance whether a model accepts a schema. Servers that answer 500 to one, such as that
        # of llama-cpp-python, cannot be told from those that fail for a while, so this is not remembered.
        if error.code not in ("rejected", "broken"):
            raise
        is_rejected = error.code == "rejected"
    completion = await _complete(endpoint, messages, model, is_stopped, meter)
    if is_rejected:
        _without_schema.add((endpoint, model))
    return completion


async def _complete(
    endpoint: ModelEndpoint,
    messages: Sequence[Message],
    model: str,
    is_stopped: Callable[[], bool],
    meter: UsageMeter,
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Completion:
    text, reasoning, finish_reason = "", 0, ""
    async with aclosing(client.stream(endpoint, messages, model=model, options=options, meter=meter)) as chunks:
        async for chunk in chunks:
            text += chunk.text
            reasoning += len(chunk.reasoning)
            finish_reason = chunk.finish_reason or finish_reason
            if is_stopped() or len(text) > _MAX_CHARACTERS or reasoning > client.MAX_REASONING:
                break
    if not text.strip():
        raise failures.empty_answer(finish_reason)
    return Completion(text, meter.of_request().tokens)
