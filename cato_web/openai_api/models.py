"""The models that clients can name: "cato" (the thread's own), those of the endpoint, and the embedding model."""

from __future__ import annotations

import time
from typing import Any

from cato_web.openai_api.errors import no_such_model
from chat.errors import ModelError
from chat.llm import client
from chat.llm.endpoint import ModelEndpoint
from memory.api import embedding_model

DEFAULT_MODEL = "cato"
_CACHE_TTL = 60.0  # seconds
_cache: dict[ModelEndpoint, tuple[float, list[str]]] = {}


async def available_models(model_endpoint: ModelEndpoint | None) -> list[str]:
    """Return the configured model and those that the endpoint lists, cached for a minute."""
    if model_endpoint is None:
        return []
    at, names = _cache.get(model_endpoint, (float("-inf"), []))
    if time.monotonic() - at > _CACHE_TTL:
        try:
            names = await client.list_models(model_endpoint)
        except ModelError:
            names = []
        _cache.clear()
        _cache[model_endpoint] = (time.monotonic(), names)
    return sorted({*names, model_endpoint.model} - {""})


async def resolve_model(name: str | None, model_endpoint: ModelEndpoint | None) -> str | None:
    """Return the model to use: None for the thread's own, "" for the configured one. Raises OpenAIError.

    Without an endpoint, every name is accepted and answered with the placeholder.
    """
    if not name or name == DEFAULT_MODEL or model_endpoint is None:
        return None
    if name == model_endpoint.model:
        return ""
    if name not in await available_models(model_endpoint):
        raise no_such_model(name)
    return name


async def model_objects(model_endpoint: ModelEndpoint | None) -> list[dict[str, Any]]:
    """Return all models as OpenAI model objects."""
    owners = {DEFAULT_MODEL: "cato"} | {
        name: model_endpoint.host if model_endpoint else "" for name in await available_models(model_endpoint)
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
