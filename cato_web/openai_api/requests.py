"""Request models of /v1, and their conversion to options of the model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, cast

from django.utils.translation import gettext as _
from pydantic import BaseModel, Field, StrictInt

from cato_web.openai_api import input_tokens
from cato_web.openai_api.errors import OpenAIError, unsupported
from cato_web.openai_api.messages import Message, build_conversation, check_roles
from cato_web.openai_api.tool_requests import tool_options
from chat.services import ClientConversation
from memory.api import clean_json, format_number

# Options are stored with the turn, so their size is limited.
_MAX_FORMAT_LENGTH = 100_000  # characters of JSON
StopWord = Annotated[str, Field(max_length=200)]


class StreamOptions(BaseModel):
    """Options of a streamed answer."""

    include_usage: bool = False


class GenerationOptions(BaseModel):
    """Fields of a request that are passed on to the model unchanged."""

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] | None = None
    stop: StopWord | Annotated[list[StopWord], Field(max_length=4)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    reasoning_effort: Annotated[str, Field(max_length=20)] | None = None
    response_format: dict[str, Any] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None


class ChatRequest(GenerationOptions):
    """A conversation whose last message is to be answered. Other fields of OpenAI's are ignored."""

    model: str | None = None
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    functions: list[Any] | None = None
    function_call: Any = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    modalities: list[str] | None = None
    metadata: dict[str, Any] | None = None


class EmbeddingRequest(BaseModel):
    """Texts to embed. `dimensions` must match the model."""

    model: str | None = None
    input: str | list[str] | list[StrictInt] | list[list[StrictInt]]
    encoding_format: str | None = None
    dimensions: int | None = None


def to_conversation(body: ChatRequest) -> ClientConversation:
    """Convert the request. Raises OpenAIError if it uses unsupported features or ends without anything to answer."""
    check_supported(body)
    check_roles(body.messages, allow_tools=True)
    return build_conversation(body.messages)


def generation_options(body: ChatRequest) -> dict[str, Any]:
    """Return the options of the model for this answer, as `chat.llm.client.stream` takes them. Raises OpenAIError."""
    options = body.model_dump(include=set(GenerationOptions.model_fields), exclude_none=True)
    options |= tool_options(body.tools, body.tool_choice, body.parallel_tool_calls)
    limits = [limit for limit in (body.max_tokens, body.max_completion_tokens) if limit is not None]
    options |= {"max_tokens": min(limits)} if limits else {}
    return {name: storable(value, name) for name, value in options.items()}


def input_texts(body: EmbeddingRequest, *, limit: int, max_length: int) -> list[str]:
    """Return the texts to embed, at least one. Raises OpenAIError.

    An array of numbers is one text in tokens, as in OpenAI's API.
    """
    is_one = isinstance(body.input, str) or (bool(body.input) and isinstance(body.input[0], int))
    inputs = cast("Sequence[str | list[int]]", [body.input] if is_one else body.input)
    facts = {"most": limit, "longest": max_length}
    too_much = OpenAIError(
        _("At most %(most)s texts at once, each of at most %(longest)s characters.") % facts, param="input"
    )
    if len(inputs) > limit:
        raise too_much
    texts: list[str] = []
    for each in inputs:
        # A token can stand for 128 characters, so the texts are checked one by one, before and after they are decoded.
        if len(each) > max_length:
            raise too_much
        text = each if isinstance(each, str) else input_tokens.decode(each)
        if len(text) > max_length:
            raise too_much
        texts.append(text)
    if not texts or not all(text.strip() for text in texts):
        raise OpenAIError(_("There is nothing to embed: send one text or several, none of them empty."), param="input")
    return texts


def check_supported(body: ChatRequest) -> None:
    """Raise OpenAIError if the request uses a feature that is not supported."""
    if body.functions or body.function_call:
        sentence = _("OpenAI replaced functions and function_call by tools and tool_choice: use these.")
        raise unsupported(sentence, "functions" if body.functions else "function_call")
    if body.n is not None and body.n != 1:
        raise unsupported(_("`n` must be 1."), "n")
    format = body.response_format or {"type": "text"}
    if not isinstance(format.get("type"), str) or not isinstance(format.get("json_schema", {}), dict):
        raise OpenAIError(_("response_format has a type; its json_schema is an object."), param="response_format")
    if len(json.dumps(format)) > _MAX_FORMAT_LENGTH:
        sentence = _("response_format has at most %(most)s characters.") % {"most": format_number(_MAX_FORMAT_LENGTH)}
        raise OpenAIError(sentence, param="response_format")
    if body.modalities and body.modalities != ["text"]:
        raise unsupported(_("Cato answers with text alone."), "modalities")
    if body.top_logprobs is not None and not body.logprobs:
        raise OpenAIError(_("top_logprobs needs logprobs: true."), param="top_logprobs")


def storable(value: Any, param: str) -> Any:
    """Return the JSON value with clean texts. Raises OpenAIError for a number that JSON and databases do not know."""
    try:
        return clean_json(value)
    except ValueError as error:
        sentence = _("%(name)s contains a number that is not finite.")
        raise OpenAIError(sentence % {"name": param}, param=param) from error
