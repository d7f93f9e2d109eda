"""The models that a user can choose for new threads, as listed by the model endpoint."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from chat.llm import endpoint
from chat.llm.model_list import read_model_list


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """The available models, or `error` if they are unknown; `configured` is the default model."""

    names: tuple[str, ...] = ()
    error: str = ""
    host: str = ""
    configured: str = ""


def available_models() -> ModelChoices:
    """Return the models of the current endpoint; wait at most 5 seconds."""
    model_endpoint = endpoint.current()
    if model_endpoint is None:
        return ModelChoices(error=_("No model is connected."))
    models = read_model_list(model_endpoint)
    # Names that were listed earlier are not offered while the list cannot be read; a name can then be typed.
    names = () if models.error else models.names
    return ModelChoices(names, models.error, model_endpoint.host, model_endpoint.model)
