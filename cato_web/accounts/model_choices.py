"""Which models a person may choose for new threads: those the endpoint lists, asked now and then."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

from django.utils.translation import gettext as _

from chat.errors import ModelError
from chat.llm import client, endpoint
from chat.llm.endpoint import ModelEndpoint

_PATIENCE = 3.0
_ASK_EVERY = 30.0
_asked: dict[ModelEndpoint, tuple[float, ModelChoices]] = {}


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """The models on offer, or why that is not known; `configured` is the one that answers where none is chosen."""

    names: tuple[str, ...] = ()
    trouble: str = ""
    host: str = ""
    configured: str = ""


def available_models() -> ModelChoices:
    """What the endpoint in force offers. It is asked at most every half minute, and not waited for long."""
    answering = endpoint.current()
    if answering is None:
        return ModelChoices(trouble=_("No model is connected."))
    asked, offer = _asked.get(answering, (0.0, ModelChoices()))
    if not asked or time.monotonic() - asked > _ASK_EVERY:
        offer = _ask(answering)
        _asked.clear()
        _asked[answering] = (time.monotonic(), offer)
    return offer


def _ask(answering: ModelEndpoint) -> ModelChoices:
    host, configured = answering.host, answering.model
    try:
        names = asyncio.run(asyncio.wait_for(client.list_models(answering), _PATIENCE))
    except (ModelError, TimeoutError):
        trouble = _("Could not load the model list from %(host)s.") % {"host": host}
        return ModelChoices((), trouble, host, configured)
    # Models that only embed answer nothing.
    return ModelChoices(tuple(name for name in names if "embed" not in name.lower()), "", host, configured)
