"""The models that a user can choose for new threads, as listed by the model endpoints."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext as _

from chat.llm import endpoint
from chat.llm.choices import offered_choices, read_model_lists


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """The available models, or `error` if they are unknown; `configured` is the default model."""

    names: tuple[str, ...] = ()
    error: str = ""
    host: str = ""
    configured: str = ""


def available_models() -> ModelChoices:
    """Return the models of the endpoints; wait at most 5 seconds."""
    model_endpoint = endpoint.current()
    if model_endpoint is None:
        return ModelChoices(error=_("No model is connected."))
    among = [model_endpoint, *endpoint.list_further()]
    lists = read_model_lists(among)
    models = lists[0]
    # Names that were listed earlier are not offered while the list cannot be read; a name can then be typed.
    names = () if models.error else tuple(offered_choices(among, lists))
    return ModelChoices(names, models.error, model_endpoint.host, model_endpoint.model)
