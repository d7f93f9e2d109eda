"""The model that answers, through any OpenAI-compatible endpoint: chat's only home of openai."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils.translation import gettext as _

from chat.endpoint import Answering
from chat.errors import ModelFailed
from chat.thoughts import Thoughts

if TYPE_CHECKING:
    from openai import AsyncOpenAI

# A message's content is text, or a list of parts where pictures go with it.
Message = dict[str, Any]
_CONNECT_TIMEOUT = 10.0
# What servers answer to a request that they understand and will not do; 404 is said for models and for abilities.
_REJECTIONS = (400, 413, 415, 422)
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Answering, AsyncOpenAI]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the answer's text, or of what the model thinks before it; the last one may carry what it cost."""

    text: str = ""
    reasoning: str = ""
    usage: dict[str, int] | None = None


async def stream(answering: Answering, messages: Sequence[Message], *, model: str = "") -> AsyncIterator[Piece]:
    """Yield the answer as it comes. Raises ModelFailed, also in the middle."""
    await asyncio.to_thread(_load)
    import httpx2  # openai's own: what breaks in the middle of a stream is not wrapped
    import openai

    conf = settings.CATO.llm
    began = finished = False
    thoughts = Thoughts()
    try:
        chosen = model or answering.model or await _first_model(answering)
        asking = _client(answering).chat.completions.with_streaming_response.create(
            model=chosen,
            messages=cast(Any, list(messages)),
            temperature=conf.temperature,
            max_tokens=conf.max_tokens,
            stream=True,
            stream_options={"include_usage": True},
        )
        async with asking as answer:
            # Read line by line: a typed object for each token costs more than all that is done with it.
            async for line in answer.iter_lines():
                if not line.startswith("data:") or line.endswith("[DONE]"):
                    continue
                piece, is_last = _read(line[5:])
                finished = finished or is_last
                if piece.text:
                    thought, said = thoughts.feed(piece.text)
                    piece = replace(piece, text=said, reasoning=piece.reasoning + thought)
                if piece != Piece():
                    began = True
                    yield piece
        thought, said = thoughts.end()
        yield Piece(said, thought)
    except (openai.APITimeoutError, httpx2.TimeoutException) as error:
        raise _timed_out() from error
    except (openai.APIConnectionError, httpx2.HTTPError) as error:
        raise _broke_off() if began else _failure(error, answering) from error
    except openai.OpenAIError as error:
        raise _failure(error, replace(answering, model=model or answering.model)) from error
    if not finished:
        raise _broke_off()


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


async def models(answering: Answering) -> list[str]:
    """The names of the models the endpoint lists. Raises ModelFailed."""
    import openai

    try:
        page = await _client(answering).models.list()
    except openai.OpenAIError as error:
        raise _failure(error, answering) from error
    return sorted(model.id for model in page.data)


async def try_it(answering: Answering) -> str:
    """Ask for one short answer and return it with the model's name. Raises ModelFailed."""
    model = answering.model or await _first_model(answering)
    said = await say(answering, [{"role": "user", "content": "Say hello in three words."}], model=model)
    return _("%(model)s answers: %(said)s") % {"model": model, "said": said}


async def say(answering: Answering, messages: Sequence[Message], *, model: str = "") -> str:
    """A short answer, at most 200 characters of it, without what is thought before. Raises ModelFailed."""
    said = ""
    async for piece in stream(answering, messages, model=model):
        said += piece.text
        if len(said) > 200:
            break
    if not said.strip():
        raise ModelFailed(_("%(model)s answered with nothing.") % {"model": model or answering.host}, "empty")
    return said.strip()[:200]


async def _first_model(answering: Answering) -> str:
    names = [name for name in await models(answering) if "embed" not in name.lower()]
    if not names:
        raise ModelFailed(_("%(host)s lists no model. Name one in the settings.") % {"host": answering.host}, "refused")
    return names[0]


def _client(answering: Answering) -> AsyncOpenAI:
    """The endpoint's client: one for each event loop, for its connections live in one."""
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    if answering not in clients:
        clients[answering] = _new_client(answering)
    return clients[answering]


def _load() -> None:
    """The library takes the better part of a second to load; the first who asks must not keep everybody waiting."""
    import openai  # noqa: F401


def _new_client(answering: Answering) -> AsyncOpenAI:
    from openai import AsyncOpenAI, Timeout

    return AsyncOpenAI(
        base_url=answering.base_url,
        # Local endpoints want no key, but the client wants one.
        api_key=answering.api_key or "none",
        timeout=Timeout(settings.CATO.llm.timeout_seconds, connect=_CONNECT_TIMEOUT),
        max_retries=0,
    )


def _read(data: str) -> tuple[Piece, bool]:
    """One event's piece of the answer, and whether the model says that it is through. Raises ModelFailed."""
    try:
        event = json.loads(data)
        if event.get("error"):
            raise ModelFailed(_("The model's server failed in the middle. What it said so far is kept."), "broken")
        choice = (event.get("choices") or [{}])[0]
        delta = choice.get("delta") or {}
        # Endpoints disagree on the name; OpenAI's own sends none of it.
        reasoning = delta.get("reasoning_content") or delta.get("reasoning") or ""
        used = event.get("usage")
        usage = {name: int(used[name]) for name in ("prompt_tokens", "completion_tokens")} if used else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFailed(_("The model's answer could not be read. Try again."), "broken") from error
    return Piece(str(delta.get("content") or ""), str(reasoning), usage), choice.get("finish_reason") is not None


def _broke_off() -> ModelFailed:
    return ModelFailed(_("The model broke off in the middle. What it said so far is kept."), "cut")


def _timed_out() -> ModelFailed:
    sentence = _("The model stopped answering after %(seconds)g seconds. What it said so far is kept.")
    return ModelFailed(sentence % {"seconds": settings.CATO.llm.timeout_seconds}, "timeout")


def _failure(error: Exception, answering: Answering) -> ModelFailed:
    import httpx2
    import openai

    if isinstance(error, openai.APITimeoutError):
        return _timed_out()
    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        sentence = _("%(host)s cannot be reached. Your message is kept; try again.") % {"host": answering.host}
        return ModelFailed(sentence, "unreachable")
    if isinstance(error, openai.RateLimitError):
        sentence = _("The model has too much to do (rate limit). Wait a little and try again.")
        return ModelFailed(sentence, "rate_limited")
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        sentence = _("%(host)s refuses the API key. An administrator can change it.") % {"host": answering.host}
        return ModelFailed(sentence, "refused")
    if isinstance(error, openai.NotFoundError):
        facts = {"host": answering.host, "model": answering.model}
        return ModelFailed(_("%(host)s does not know the model %(model)s.") % facts, "rejected")
    if isinstance(error, openai.APIStatusError) and error.status_code in _REJECTIONS:
        sentence = _("The model's server does not take this (HTTP %(status)s).") % {"status": error.status_code}
        return ModelFailed(sentence, "rejected")
    if isinstance(error, openai.APIStatusError):
        sentence = _("The model's server failed (HTTP %(status)s). Try again.") % {"status": error.status_code}
        return ModelFailed(sentence, "broken")
    return ModelFailed(_("The model's answer could not be read. Try again."), "broken")
