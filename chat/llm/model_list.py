"""The chat models of the endpoint, for the model picker, the command /model and the settings of a person."""

from __future__ import annotations

import asyncio
import difflib
import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from chat import cached_values
from chat.errors import InvalidMessageError, ModelError
from chat.llm import client
from chat.llm.endpoint import ModelEndpoint
from chat.llm.failures import NOT_RESPONDING
from memory.api import clean_text

MAX_NAME_LENGTH = 120
_TIMEOUT = 5.0  # seconds
_FRESH = timedelta(seconds=30)
_CACHE_TTL = 24 * 60 * 60  # seconds; the names stay known while the endpoint does not respond
# Failures further apart than this are not one outage, because nobody knows what happened between them.
_MAX_GAP = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class ModelList:
    """The chat models of an endpoint; without `error`, `names` are those that it lists, possibly none.

    With `error`, the list could not be read, and `names` are those listed last, possibly long ago. `failing_since` is when
    the endpoint was first found not to respond; None if it responded, with a list or an error.
    """

    names: tuple[str, ...] = ()
    error: str = ""
    failing_since: datetime | None = None
    read_at: datetime | None = None

    def default_name(self, endpoint: ModelEndpoint) -> str:
        """Return the model of threads for which none was chosen: the configured one, else the first that is listed."""
        return endpoint.model or (self.names[0] if self.names else "")


def read_model_list(endpoint: ModelEndpoint) -> ModelList:
    """Return the endpoint's models, at most 30 seconds old; wait at most 5 seconds for them."""
    previous = _cached(endpoint)
    if previous.read_at is not None and timezone.now() - previous.read_at < _FRESH:
        return previous
    current = _load(endpoint, previous)
    cached_values.keep(_cache_key(endpoint), current, _CACHE_TTL)
    return current


def validate_model(endpoint: ModelEndpoint, name: str) -> str:
    """Return the model to save for a thread: "" for the default one. Raises InvalidMessageError.

    Any name is accepted if the endpoint lists no models, or if its list cannot be read.
    """
    name = clean_text(name).strip()
    if not name:
        raise InvalidMessageError(_("Choose a model."))
    if len(name) > MAX_NAME_LENGTH:
        text = _("The name of a model has at most %(most)s characters.") % {"most": MAX_NAME_LENGTH}
        raise InvalidMessageError(text, "/model")
    if name == endpoint.model:
        return ""
    models = _cached(endpoint)
    if name not in models.names:
        models = read_model_list(endpoint)
    if models.names and not models.error and name not in models.names:
        raise _not_offered(endpoint, name, models)
    return "" if name == models.default_name(endpoint) else name


def _not_offered(endpoint: ModelEndpoint, name: str, models: ModelList) -> InvalidMessageError:
    text = _("%(host)s does not offer %(model)s.") % {"host": endpoint.host, "model": name}
    by_lower_case = {listed.lower(): listed for listed in models.names}
    similar = difflib.get_close_matches(name.lower(), by_lower_case, n=1, cutoff=0.5)
    if not similar:
        hint = _("/model lists its models.")
        return InvalidMessageError(f"{text} {hint}", "/model")
    closest = by_lower_case[similar[0]]
    hint = _("Did you mean %(model)s?") % {"model": closest}
    return InvalidMessageError(f"{text} {hint}", f"/model {closest}")


def _load(endpoint: ModelEndpoint, previous: ModelList) -> ModelList:
    now = timezone.now()
    try:
        names = client.run(asyncio.wait_for(client.list_models(endpoint), _TIMEOUT))
    except TimeoutError:
        return _not_responding(endpoint, previous, now)
    except ModelError as error:
        if error.code in NOT_RESPONDING:
            return _not_responding(endpoint, previous, now)
        if error.code == "rejected":
            # It has no such list, so nothing is known about its models.
            return ModelList(read_at=now)
        return ModelList(previous.names, str(error), read_at=now)
    # Embedding models cannot answer.
    return ModelList(tuple(name for name in dict.fromkeys(names) if "embed" not in name.lower()), read_at=now)


def _not_responding(endpoint: ModelEndpoint, previous: ModelList, now: datetime) -> ModelList:
    since, read_at = previous.failing_since, previous.read_at
    if since is None or read_at is None or now - read_at > _MAX_GAP:
        since = now
    error = _("Could not load the model list from %(host)s.") % {"host": endpoint.host}
    return ModelList(previous.names, error, since, now)


def _cached(endpoint: ModelEndpoint) -> ModelList:
    return cached_values.kept(_cache_key(endpoint), ModelList) or ModelList()


def _cache_key(endpoint: ModelEndpoint) -> str:
    """Return the key of the cache, a hash: caches show their keys, and the models depend on the API key."""
    return "models:" + hashlib.sha256(f"{endpoint.base_url}\n{endpoint.api_key}".encode()).hexdigest()
