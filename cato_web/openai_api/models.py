"""The models that clients can name: "cato" (the thread's own), those of the endpoints, and the embedding model."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from cato_web.openai_api.errors import no_chat_model, no_such_model
from chat.errors import ModelError
from chat.llm import client
from chat.llm.choices import own_names
from chat.llm.endpoint import ModelEndpoint
from memory.api import embedding_model

DEFAULT_MODEL = "cato"
_CACHE_TTL = 60.0  # seconds
_MAX_CACHED = 50
_cache: dict[ModelEndpoint, tuple[float, list[str]]] = {}


async def available_models(endpoints: Sequence[ModelEndpoint]) -> dict[str, ModelEndpoint]:
    """Return the configured models and those that the endpoints list, cached for a minute, each with its endpoint.

    A model of a further endpoint is named `name/model`, which precedes one of the first endpoint.
    """
    lists = await asyncio.gather(*(_list(endpoint) for endpoint in endpoints))
    found: dict[str, ModelEndpoint] = {}
    for endpoint, names in zip(endpoints, lists, strict=True):
        own = own_names(endpoint, {*names, endpoint.model} - {""}, endpoints)
        found |= {endpoint.choice_of(name): endpoint for name in own}
    return dict(sorted(found.items()))


async def _list(endpoint: ModelEndpoint) -> list[str]:
    at, names = _cache.get(endpoint, (float("-inf"), []))
    if time.monotonic() - at > _CACHE_TTL:
        try:
            names = await client.list_models(endpoint)
        except ModelError:
            names = []
        if len(_cache) >= _MAX_CACHED:
            _cache.clear()
        _cache[endpoint] = (time.monotonic(), names)
    return names


async def resolve_model(name: str | None, endpoints: Sequence[ModelEndpoint]) -> str | None:
    """Return the model to use: None for the thread's own, "" for the configured one. Raises OpenAIError.

    Without an endpoint, every name is accepted and answered with the placeholder.
    """
    if not name or name == DEFAULT_MODEL or not endpoints:
        return None
    if not endpoints[0].name and name == endpoints[0].model:
        return ""
    if name not in await available_models(endpoints):
        raise no_chat_model(name) if name == embedding_model() else no_such_model(name)
    return name


async def model_objects(endpoints: Sequence[ModelEndpoint]) -> list[dict[str, Any]]:
    """Return all models as OpenAI model objects."""
    owners = {DEFAULT_MODEL: "cato"} | {
        name: endpoint.host for name, endpoint in (await available_models(endpoints)).items()
    }
    return [
        # Endpoints do not say reliably when a model was made; clients only require a number.
        {"id": name, "object": "model", "created": 0, "owned_by": owner, "type": kind}
        for name, owner, kind in [
            *((name, owner, _kind(name)) for name, owner in owners.items() if name != embedding_model()),
            (embedding_model(), "cato", "embedding"),
        ]
    ]


def _kind(name: str) -> str:
    """Return what a model of the endpoint is for, as far as its name says so."""
    return "embedding" if "embed" in name.lower() else "chat"
