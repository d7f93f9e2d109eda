"""Which models there are to name: "cato" for whichever a thread has, those the endpoint lists, and the one that embeds."""

from __future__ import annotations

import time
from typing import Any

from cato_web.openai_api.refusals import no_such_model
from chat.errors import ModelError
from chat.llm import client
from chat.llm.endpoint import ModelEndpoint
from memory.api import embedding_model

OWN = "cato"
_KNOWN_FOR = 60.0  # seconds
_known: dict[ModelEndpoint, tuple[float, list[str]]] = {}


async def listed(answering: ModelEndpoint | None) -> list[str]:
    """What the endpoint lists, asked once a minute, and the configured one; what it does not tell, nobody knows."""
    if answering is None:
        return []
    at, names = _known.get(answering, (float("-inf"), []))
    if time.monotonic() - at > _KNOWN_FOR:
        try:
            names = await client.list_models(answering)
        except ModelError:
            names = []
        _known.clear()
        _known[answering] = (time.monotonic(), names)
    return sorted({*names, answering.model} - {""})


async def chosen(name: str | None, answering: ModelEndpoint | None) -> str | None:
    """The model to answer: None for whichever the thread has, "" for the configured one. Raises OpenAIError.

    Without an endpoint every name gets the placeholder.
    """
    if not name or name == OWN or answering is None:
        return None
    if name == answering.model:
        return ""
    if name not in await listed(answering):
        raise no_such_model(name)
    return name


async def all_of(answering: ModelEndpoint | None) -> list[dict[str, Any]]:
    """Every model as OpenAI describes one."""
    chatting = {OWN: "cato"} | {name: answering.host if answering else "" for name in await listed(answering)}
    return [
        {"id": name, "object": "model", "created": 0, "owned_by": owner}
        for name, owner in (chatting | {embedding_model(): "cato"}).items()
    ]
