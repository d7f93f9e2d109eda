"""The model that answers, through any OpenAI-compatible endpoint: chat's only home of openai."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils.translation import gettext as _

from chat.answers import failures
from chat.answers.reasoning import ReasoningSplitter
from chat.errors import ModelError
from chat.llm.endpoint import ModelEndpoint
from chat.llm.events import EventError, EventReader, StreamChunk, piece_of

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import AsyncOpenAI

# A message's content is text, or a list of parts where pictures go with it.
Message = dict[str, Any]
_CONNECT_TIMEOUT = 10.0
# Everything else that this process does gets its turn after so much of an endpoint that sends without a pause.
_BYTES_AT_ONCE = 4096
# In bytes, of a stream and of all else that an endpoint answers.
_LONGEST_STREAM, _LONGEST_BODY = 200_000_000, 8_000_000
_LONGEST_THOUGHT = 200_000  # characters before an answer that is to be short
_MOST_MODELS, _LONGEST_NAME = 1_000, 120
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[ModelEndpoint, AsyncOpenAI]] = WeakKeyDictionary()


async def stream(
    answering: ModelEndpoint, messages: Sequence[Message], *, model: str = ""
) -> AsyncGenerator[StreamChunk, None]:
    """Yield the answer as it comes. Raises ModelError, also in the middle.

    Once the model has said that it is through, nothing that goes wrong after it makes the answer fail.
    """
    await asyncio.to_thread(_load)
    import httpx2  # openai's own: what breaks in the middle of a stream is not wrapped
    import openai

    began = finished = False
    failure: ModelError | None = None
    thoughts = ReasoningSplitter()
    try:
        chosen = model or answering.model or await _first_model(answering)
        async with aclosing(_pieces(answering, messages, chosen)) as pieces:
            async for piece in pieces:
                finished = finished or bool(piece.finish_reason)
                if piece.text:
                    thought, said = thoughts.feed(piece.text)
                    piece = replace(piece, text=said, reasoning=piece.reasoning + thought)
                if piece != StreamChunk():
                    began = began or bool(piece.text or piece.reasoning)
                    yield piece
    except ModelError as error:
        failure = error
    except (EventError, httpx2.HTTPError, openai.OpenAIError) as error:
        failure = _failure(error, replace(answering, model=model or answering.model), has_begun=began)
        failure.__cause__ = error
    thought, said = thoughts.end()
    if thought or said:
        yield StreamChunk(said, thought)
    if not finished:
        raise failure or failures.broke_off(began)


async def _pieces(
    answering: ModelEndpoint, messages: Sequence[Message], model: str
) -> AsyncGenerator[StreamChunk, None]:
    """Yield what the endpoint sends, event by event, until it says that it is done."""
    conf = settings.CATO.llm
    asking = _client(answering).chat.completions.with_streaming_response.create(
        model=model,
        messages=cast(Any, list(messages)),
        temperature=conf.temperature,
        max_tokens=conf.max_tokens,
        stream=True,
        stream_options={"include_usage": True},
    )
    reader = EventReader()
    async with asking as answer:
        # Read event by event: a typed object for each token costs more than all that is done with it.
        async for received in answer.iter_bytes():
            for at in range(0, len(received), _BYTES_AT_ONCE):
                for event in reader.feed(received[at : at + _BYTES_AT_ONCE]):
                    yield _piece(event)
                if reader.is_done:
                    return
                await asyncio.sleep(0)
    for event in reader.end():
        yield _piece(event)


def _piece(event: dict[str, Any]) -> StreamChunk:
    if event.get("error"):
        raise failures.failed_midway()
    return piece_of(event)


def has_images(messages: Sequence[Message]) -> bool:
    """Whether pictures go with any of `messages`."""
    return any(isinstance(message["content"], list) for message in messages)


def without_images(messages: Sequence[Message]) -> list[Message]:
    """The same with a line of text in the place of each picture, for models that take none."""

    def told(part: dict[str, Any]) -> str:
        return str(part["text"]) if part["type"] == "text" else "[a picture that you cannot see]"

    return [
        message
        if isinstance(message["content"], str)
        else message | {"content": "\n\n".join(told(part) for part in message["content"])}
        for message in messages
    ]


async def list_models(answering: ModelEndpoint) -> list[str]:
    """The names of the models the endpoint lists. Raises ModelError."""
    import openai

    try:
        page = await _client(answering).models.list()
        names = [model.id for model in page.data]
    except openai.OpenAIError as error:
        raise _failure(error, answering) from error
    except (AttributeError, RecursionError, TypeError, ValueError) as error:
        raise failures.no_models(answering.host) from error
    return sorted(name for name in names if isinstance(name, str) and len(name) <= _LONGEST_NAME)[:_MOST_MODELS]


async def test_endpoint(answering: ModelEndpoint) -> str:
    """Ask for one short answer and return it with the model's name. Raises ModelError."""
    model = answering.model or await _first_model(answering)
    said = await complete(answering, [{"role": "user", "content": "Say hello in three words."}], model=model)
    return _("%(model)s answers: %(said)s") % {"model": model, "said": said}


async def complete(answering: ModelEndpoint, messages: Sequence[Message], *, model: str = "") -> str:
    """A short answer, at most 200 characters of it, without what is thought before. Raises ModelError."""
    said, thought = "", 0
    async with aclosing(stream(answering, messages, model=model)) as pieces:
        async for piece in pieces:
            said += piece.text
            thought += len(piece.reasoning)
            if len(said) > 200 or thought > _LONGEST_THOUGHT:
                break
    if not said.strip():
        raise ModelError(_("%(model)s answered with nothing.") % {"model": model or answering.host}, "empty")
    return said.strip()[:200]


async def _first_model(answering: ModelEndpoint) -> str:
    names = [name for name in await list_models(answering) if "embed" not in name.lower()]
    if not names:
        raise ModelError(_("%(host)s lists no model. Name one in the settings.") % {"host": answering.host}, "refused")
    return names[0]


def _client(answering: ModelEndpoint) -> AsyncOpenAI:
    """The endpoint's client: one for each event loop, for its connections live in one."""
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    if answering not in clients:
        clients[answering] = _new_client(answering)
    return clients[answering]


def _load() -> None:
    """The library takes the better part of a second to load; the first who asks must not keep everybody waiting."""
    import openai  # noqa: F401


def _new_client(answering: ModelEndpoint) -> AsyncOpenAI:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

    timeout = Timeout(settings.CATO.llm.timeout_seconds, connect=_CONNECT_TIMEOUT)
    return AsyncOpenAI(
        base_url=answering.base_url,
        # Local endpoints want no key, but the client wants one.
        api_key=answering.api_key or "none",
        timeout=timeout,
        max_retries=0,
        http_client=DefaultAsyncHttpxClient(
            timeout=timeout,
            # A redirect would hand the prompt to a host that nobody configured.
            follow_redirects=False,
            # One client serves everybody, so that a cookie would tell one person's requests by another's.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            # A few kB can unpack to gigabytes; an endpoint that packs all the same is refused by the hook.
            headers={"Accept-Encoding": "identity"},
            event_hooks={"response": [_bound]},
        ),
    )


async def _bound(response: Response) -> None:
    """Limit what is read of a response, however it is read. Raises ModelError."""
    from httpx2 import AsyncByteStream

    host = response.url.netloc.decode()
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise failures.compressed(host)
    source = cast("AsyncByteStream", response.stream)
    is_answer = response.is_success and response.url.path.endswith("/chat/completions")
    most = _LONGEST_STREAM if is_answer else _LONGEST_BODY

    class Bounded(AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for received in source:
                size += len(received)
                if size > most:
                    raise failures.too_long(host)
                yield received

        async def aclose(self) -> None:
            await source.aclose()

    response.stream = Bounded()


def _failure(error: Exception, answering: ModelEndpoint, *, has_begun: bool = False) -> ModelError:
    import httpx2
    import openai

    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return failures.timed_out()
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        return failures.broke_off(has_begun) if has_begun else failures.unreachable(answering.host)
    if isinstance(error, openai.APIStatusError):
        retry_after = error.response.headers.get("retry-after", "")
        return failures.of_status(error.status_code, retry_after, host=answering.host, model=answering.model)
    return failures.unreadable()
