"""The check of a model endpoint before it is saved: whether it responds and accepts the API key."""

from __future__ import annotations

import asyncio

from django.utils.translation import gettext as _

from chat.errors import KeyRefusedError, ModelError, UnknownModelError
from chat.llm import client
from chat.llm.endpoint import ModelEndpoint
from chat.llm.failures import NOT_RESPONDING, with_reason

_LIST_TIMEOUT, _ANSWER_TIMEOUT = 10.0, 15.0  # seconds
_RESPONDING = ("rate_limited", "empty")  # failures of an endpoint that is there and accepts the key


class EndpointCheckError(Exception):
    """The endpoint cannot be used; the message says why and what to do, `field` is the one to correct."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


def check_endpoint(endpoint: ModelEndpoint) -> None:
    """Request the list of models and a short answer. Raises EndpointCheckError.

    A model that needs longer than 15 seconds to answer passes if its endpoint lists models: it may still be loading.
    """
    client.run(_check(endpoint))


def failure(error: ModelError, endpoint: ModelEndpoint) -> EndpointCheckError:
    """Return the error for the person who enters the endpoint."""
    host = endpoint.host
    if isinstance(error, KeyRefusedError):
        if endpoint.api_key:
            text = _("%(host)s refuses the API key. Check the key and enter it again.")
        else:
            text = _("%(host)s requires an API key. Enter one.")
        return EndpointCheckError(text % {"host": host}, "api_key")
    if error.code in NOT_RESPONDING or error.code == "cut":
        text = _("%(host)s does not respond. Check the address, and that the server is running.")
        return EndpointCheckError(text % {"host": host}, "base_url")
    if isinstance(error, UnknownModelError) and endpoint.model:
        text = _("%(host)s does not know the model %(model)s. Check its name and the address, which often ends in /v1.")
        return EndpointCheckError(text % {"host": host, "model": endpoint.model}, "model")
    said = with_reason(str(error), error.reason)
    if error.code == "rejected" and endpoint.model:
        text = _("%(error)s Check the model and the address, which often ends in /v1.")
        return EndpointCheckError(text % {"error": said}, "model")
    return EndpointCheckError(_("%(error)s Check the address, which often ends in /v1.") % {"error": said}, "base_url")


async def _check(endpoint: ModelEndpoint) -> None:
    is_listed = False
    try:
        async with asyncio.timeout(_LIST_TIMEOUT):
            is_listed = bool(await client.list_models(endpoint))
    except TimeoutError:
        raise failure(ModelError("", "timeout"), endpoint) from None
    except ModelError as error:
        if isinstance(error, KeyRefusedError) or error.code in NOT_RESPONDING:
            raise failure(error, endpoint) from error
    if not is_listed and not endpoint.model:
        text = _("%(host)s lists no models. Check the address, which often ends in /v1, or name a model.")
        raise EndpointCheckError(text % {"host": endpoint.host}, "base_url")
    try:
        async with asyncio.timeout(_ANSWER_TIMEOUT):
            await client.test_endpoint(endpoint)
    except TimeoutError:
        if not is_listed:
            raise failure(ModelError("", "timeout"), endpoint) from None
    except ModelError as error:
        if error.code not in _RESPONDING and not (error.code == "timeout" and is_listed):
            raise failure(error, endpoint) from error
