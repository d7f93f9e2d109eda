"""The models that a user can choose for new threads, as listed by the model endpoint."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from django.utils.translation import gettext as _

from chat.errors import ModelError
from chat.llm import client, endpoint
from chat.llm.endpoint import ModelEndpoint

_TIMEOUT = 3.0
_CACHE_TTL = 30.0
_cache: dict[ModelEndpoint, tuple[float, ModelChoices]] = {}


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """The available models, or `error` if they are unknown; `configured` is the default model."""

    names: tuple[str, ...] = ()
    error: str = ""
    host: str = ""
    configured: str = ""


def available_models() -> ModelChoices:
    """Return the models of the current endpoint, cached for 30 seconds; wait at most 3 seconds."""
    model_endpoint = endpoint.current()
    if model_endpoint is None:
        return ModelChoices(error=_("No model is connected."))
    loaded_at, choices = _cache.get(model_endpoint, (0.0, ModelChoices()))
    if not loaded_at or time.monotonic() - loaded_at > _CACHE_TTL:
        choices = _load(model_endpoint)
        _cache.clear()
        _cache[model_endpoint] = (time.monotonic(), choices)
    return choices


def _load(model_endpoint: ModelEndpoint) -> ModelChoices:
    host, configured = model_endpoint.host, model_endpoint.model
    try:
        names = client.run(asyncio.wait_for(client.list_models(model_endpoint), _TIMEOUT))
    except (ModelError, TimeoutError):
        error = _("Could not load the model list from %(host)s.") % {"host": host}
        return ModelChoices((), error, host, configured)
    # Embedding models cannot answer.
    return ModelChoices(tuple(name for name in names if "embed" not in name.lower()), "", host, configured)
