"""The client of OpenAI-compatible model endpoints."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence, Set
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils.translation import gettext as _

from chat.errors import ModelError
from chat.llm import failures
from chat.llm.endpoint import ModelEndpoint
from chat.llm.events import EventError, EventReader, StreamChunk, parse_chunk
from chat.llm.http import close_session, event_error, new_http_client, post
from chat.llm.reasoning import ReasoningSplitter
from chat.llm.tool_calls import portable_message
from chat.llm.usage_counts import UsageMeter

if TYPE_CHECKING:
    import openai
    from openai import AsyncOpenAI

R = TypeVar("R")
# The content of a message is text, a list of parts if it has images, or None if it only has tool calls.
Message = dict[str, Any]
_SLICE_BYTES = 4096  # after so many bytes, other tasks of the event loop run
MAX_REASONING = 200_000  # characters before a short answer
_MAX_MODELS, _MAX_NAME_LENGTH = 1_000, 120
NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
# OpenAI's reasoning models accept neither `temperature` nor `max_tokens`, and Mistral accepts no `stream_options`.
_OPTIONAL_FIELDS = ("temperature", "max_tokens", "stream_options")
# Those that a model rejected; they are sent again after a restart.
_unsupported: dict[tuple[ModelEndpoint, str], Set[str]] = {}
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ModelEndpoint, AsyncOpenAI]] = WeakKeyDictionary()


async def stream(
    endpoint: ModelEndpoint,
    messages: Sequence[Message],
    *,
    model: str = "",
    options: Mapping[str, Any] = NO_OPTIONS,
    meter: UsageMeter | None = None,
) -> AsyncGenerator[StreamChunk, None]:
    """Stream an answer. Raises ModelError, also after the first chunk; errors after a finish reason are ignored.

    `options` are fields of the request in OpenAI's format. They replace the configured temperature; a maximum length
    counts up to the configured one. `meter` counts what the request uses.
    """
    meter = meter or UsageMeter()
    has_begun = finished = False
    failure: ModelError | None = None
    splitter = ReasoningSplitter()
    try:
        chosen = model or endpoint.model or await _first_model(endpoint)
        meter.begin_request(messages, model=endpoint.choice_of(chosen), tools=options.get("tools") or ())
        async with aclosing(_stream_chunks(endpoint, messages, chosen, options)) as chunks:
            async for chunk in chunks:
                meter.add(chunk)
                finished = finished or bool(chunk.finish_reason)
                if chunk.text:
                    reasoning, text = splitter.feed(chunk.text)
                    if text != chunk.text:
                        chunk = replace(chunk, text=text, reasoning=chunk.reasoning + reasoning)
                if not chunk.is_empty:
                    has_begun = has_begun or chunk.has_content
                    yield chunk
    except ModelError as error:
        failure = error
    except (ConnectionError, TimeoutError, EventError) as error:
        failure = _stream_failure(error, endpoint.host, has_begun=has_begun)
        failure.__cause__ = error
    reasoning, text = splitter.end()
    if reasoning or text:
        yield StreamChunk(text, reasoning)
    if not finished:
        raise failure or failures.connection_lost(has_begun)


async def _stream_chunks(
    endpoint: ModelEndpoint, messages: Sequence[Message], model: str, options: Mapping[str, Any]
) -> AsyncGenerator[StreamChunk, None]:
    """Yield the endpoint's events as chunks until `[DONE]`; the request is repeated without what the model does not accept."""
    unsupported = _unsupported.get((endpoint, model), frozenset())
    body = _request_body(messages, model, options)
    has_begun = False
    while True:
        try:
            accepted = _accepted(body, unsupported, options)
            async with (
                post(endpoint, "/chat/completions", accepted) as parts,
                aclosing(_read_events(parts)) as events,
            ):
                async for event in events:
                    if event.get("error"):
                        raise await event_error(event, endpoint, accepted, has_begun=has_begun)
                    chunk = parse_chunk(event)
                    has_begun = has_begun or chunk.has_content
                    yield chunk
            return
        except ModelError as error:
            name = "" if has_begun else error.reason.unsupported_field
            if name not in _OPTIONAL_FIELDS or name in unsupported or (name == "temperature" and name in options):
                raise
            _unsupported[endpoint, model] = unsupported = unsupported | {name}


def _request_body(messages: Sequence[Message], model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    conf = settings.CATO.llm
    return {
        "temperature": conf.temperature,
        **options,
        "model": model,
        "messages": [*map(portable_message, messages)],
        "max_tokens": min(options.get("max_tokens", conf.max_tokens), conf.max_tokens),
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def _accepted(body: Mapping[str, Any], unsupported: Set[str], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body without the unsupported fields; a temperature that a client requests is rejected by the endpoint."""
    left_out = unsupported - ({"temperature"} & options.keys())
    accepted = {name: value for name, value in body.items() if name not in left_out}
    if "max_tokens" in left_out:
        accepted["max_completion_tokens"] = body["max_tokens"]
    return accepted


async def _read_events(parts: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any], None]:
    reader = EventReader()
    async for received in parts:
        for start in range(0, len(received), _SLICE_BYTES):
            if start:
                await asyncio.sleep(0)
            for event in reader.feed(received[start : start + _SLICE_BYTES]):
                yield event
            if reader.is_done:
                return
    for event in reader.end():
        yield event


def _stream_failure(error: Exception, host: str, *, has_begun: bool) -> ModelError:
    if isinstance(error, TimeoutError):
        return failures.timed_out()
    if isinstance(error, EventError):
        return failures.unreadable()
    return failures.connection_lost(has_begun) if has_begun else failures.unreachable(host)


def has_images(messages: Sequence[Message]) -> bool:
    """Return whether any of the messages has an image."""
    return any(isinstance(message.get("content"), list) for message in messages)


def without_images(messages: Sequence[Message]) -> list[Message]:
    """Replace each image by a line of text, for models that accept none."""

    def part_text(part: dict[str, Any]) -> str:
        return str(part["text"]) if part["type"] == "text" else "[a picture that you cannot see]"

    return [
        message | {"content": "\n\n".join(part_text(part) for part in message["content"])}
        if isinstance(message.get("content"), list)
        else message
        for message in messages
    ]


async def list_models(endpoint: ModelEndpoint) -> list[str]:
    """Return the names of the endpoint's models. Raises ModelError."""
    try:
        async with openai_client(endpoint) as openai:
            page = await openai.models.list()
        names = [model.id for model in page.data or ()]  # Ollama without a model sends null
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise failures.no_models(endpoint.host) from error
    known = (name for name in names if isinstance(name, str) and len(endpoint.choice_of(name)) <= _MAX_NAME_LENGTH)
    return sorted(known)[:_MAX_MODELS]


@asynccontextmanager
async def openai_client(endpoint: ModelEndpoint, *, model: str = "") -> AsyncIterator[AsyncOpenAI]:
    """Yield the client of the openai package, whose errors become ModelErrors; `model` is the one that is requested."""
    # Importing the package takes most of a second, which would block the event loop.
    await asyncio.to_thread(_import_openai)
    import httpx2
    import openai

    try:
        yield _client(endpoint)
    except openai.OpenAIError as error:
        raise _to_model_error(error, endpoint, model or endpoint.model) from error
    except httpx2.HTTPError as error:  # while the body of a response is read
        raise failures.connection_lost(has_begun=True) from error


def _import_openai() -> None:
    """Import openai, and httpx before it: openai uses httpx also while another thread is still importing it."""
    import_module("httpx")
    import_module("openai")


async def test_endpoint(endpoint: ModelEndpoint) -> str:
    """Request a short answer and return it with the model's name. Raises ModelError."""
    model = endpoint.model or await _first_model(endpoint)
    text = await complete(endpoint, [{"role": "user", "content": "Say hello in three words."}], model=model)
    return _("%(model)s answers: %(said)s") % {"model": model, "said": text}


async def complete(
    endpoint: ModelEndpoint, messages: Sequence[Message], *, model: str = "", meter: UsageMeter | None = None
) -> str:
    """Return the first 200 characters of an answer, without reasoning; `meter` counts its usage. Raises ModelError."""
    text, reasoning = "", 0
    async with aclosing(stream(endpoint, messages, model=model, meter=meter)) as chunks:
        async for chunk in chunks:
            text += chunk.text
            reasoning += len(chunk.reasoning)
            if len(text) > 200 or reasoning > MAX_REASONING:
                break
    if not text.strip():
        raise ModelError(_("%(model)s returned an empty answer.") % {"model": model or endpoint.host}, "empty")
    return text.strip()[:200]


async def _first_model(endpoint: ModelEndpoint) -> str:
    names = [name for name in await list_models(endpoint) if "embed" not in name.lower()]
    if not names:
        raise ModelError(_("%(host)s lists no model. Name one in the settings.") % {"host": endpoint.host}, "refused")
    return names[0]


def run(call: Coroutine[Any, Any, R]) -> R:
    """Run a call of this module in an event loop of its own, outside any other, and close its connections."""

    async def run_and_close() -> R:
        try:
            return await call
        finally:
            await close_connections()

    return asyncio.run(run_and_close())


async def close_connections() -> None:
    """Close the connections of this event loop."""
    for client in _clients.pop(asyncio.get_running_loop(), {}).values():
        await client.close()
    await close_session()


def _client(endpoint: ModelEndpoint) -> AsyncOpenAI:
    """Return the client of the endpoint for this event loop, to which its connections belong."""
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    if endpoint not in clients:
        clients[endpoint] = _new_client(endpoint)
    return clients[endpoint]


def _new_client(endpoint: ModelEndpoint) -> AsyncOpenAI:
    from openai import AsyncOpenAI

    http_client = new_http_client()
    return AsyncOpenAI(
        base_url=endpoint.base_url,
        # Local endpoints need no key, but the client does.
        api_key=endpoint.api_key or "none",
        timeout=http_client.timeout,
        max_retries=0,
        http_client=http_client,
    )


def _to_model_error(error: openai.OpenAIError, endpoint: ModelEndpoint, model: str) -> ModelError:
    import openai

    if isinstance(error, openai.APITimeoutError):
        return failures.timed_out()
    if isinstance(error, openai.APIConnectionError):
        return failures.unreachable(endpoint.host)
    if isinstance(error, openai.APIStatusError):
        retry_after = error.response.headers.get("retry-after", "")
        return failures.status_error(error.status_code, retry_after, host=endpoint.host, model=model)
    return failures.unreadable()
