"""The model endpoints. For the first one, environment and configuration file take precedence over the settings page.

A choice is what threads, requests and people store of a model: `model` is one of the first endpoint, `name/model` one of
the further endpoint with that name, and "" the default model of the first.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db.models import Subquery
from django.http import HttpRequest

from chat.encryption import decrypt, encrypt
from chat.models import Endpoint
from memory.api import DataPolicy

OPENAI = "https://api.openai.com/v1"
FIELDS = ("base_url", "api_key", "model")


class KeyNeededError(Exception):
    """The stored API key belongs to another address; it is sent only to that address."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A model endpoint; if `model` is empty, the first model that it lists is used. The first endpoint has no `name`."""

    base_url: str
    api_key: str
    model: str
    name: str = ""
    location: str = field(default="", compare=False)
    policy: DataPolicy = field(default=DataPolicy(), compare=False)
    # Name of the endpoint that is asked if this one does not answer; None: no other.
    fallback: str | None = field(default=None, compare=False)
    # When its row was last changed; None: it has none.
    changed_at: datetime | None = field(default=None, compare=False)
    is_removed: bool = False

    @property
    def host(self) -> str:
        """The host and port of the base URL, without a name and password."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def label(self) -> str:
        """The text for people: its name, if it has one, and its host."""
        return f"{self.name} ({self.host})" if self.name else self.host

    @property
    def is_local(self) -> bool:
        """Return whether the endpoint is on this machine, by its address."""
        name = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(name).is_loopback
        except ValueError:
            return name == "localhost" or name.endswith(".localhost")

    def displayed_model(self, chosen: str) -> str:
        """Return the name to show for a thread with this model; "" is the default one."""
        return chosen or self.model or self.host

    def choice_of(self, model: str) -> str:
        """Return the choice for this model."""
        return f"{self.name}/{model}" if self.name else model

    def __repr__(self) -> str:
        return f"ModelEndpoint({self.base_url}, {self.model})"


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """The endpoint and the name of a model there, "" for the endpoint's default model."""

    endpoint: ModelEndpoint
    model: str


def current() -> ModelEndpoint | None:
    """Return the first endpoint; None in dummy mode, which is configured or follows from no endpoint being set."""
    return None if settings.CATO.dummy_mode else _first(first_row())


def list_endpoints() -> list[ModelEndpoint]:
    """Return the endpoints in use: the first one, if it is set, then the further ones by name."""
    first = current()
    return [*([first] if first else []), *list_further()]


def list_further() -> list[ModelEndpoint]:
    """Return the further endpoints in use, by name."""
    if settings.CATO.dummy_mode:
        return []
    return [_further(row) for row in Endpoint.objects.filter(removed_at=None).exclude(name="").order_by("name")]


def find(choice: str) -> ChosenModel | None:
    """Return what a choice means now, with one statement; None if nothing answers: `current` is None.

    Names of further endpoints take precedence over models of the first one. A removed endpoint may receive nothing.
    """
    if settings.CATO.dummy_mode:
        return None
    name, slash, model = choice.partition("/")
    names = ["", name] if slash else [""]
    rows = {row.name: row for row in Endpoint.objects.filter(name__in=names)}
    if name and name in rows:
        return ChosenModel(_further(rows[name]), model)
    first = _first(rows.get("") or Endpoint())
    return ChosenModel(first, choice) if first else None


def find_named(name: str) -> ModelEndpoint | None:
    """Return the endpoint of this name, "" for the first one; None if there is none. A removed one is returned."""
    if not name:
        return current()
    row = Endpoint.objects.filter(name=name).first()
    return None if row is None or settings.CATO.dummy_mode else _further(row)


def policy_columns(name: str) -> dict[str, Subquery]:
    """Return columns that read the present policy of the endpoint of this name with another row, for `policy_of`."""
    row = Endpoint.objects.filter(name=name)
    return {"policy_kind": Subquery(row.values("policy")), "policy_places": Subquery(row.values("allowed_in"))}


def policy_of(row: Any) -> DataPolicy:
    """Return the policy that `policy_columns` has read with this row."""
    return DataPolicy() if row.policy_kind is None else DataPolicy(row.policy_kind, frozenset(row.policy_places))


def first_row() -> Endpoint:
    """Return the row of the first endpoint, new if there is none: its policy is stored, also if it is configured elsewhere."""
    return Endpoint.objects.filter(name="").first() or Endpoint()


def _first(saved: Endpoint) -> ModelEndpoint | None:
    llm = settings.CATO.llm
    fixed = externally_configured_fields()
    base_url = (llm.base_url if "base_url" in fixed else saved.base_url) or ""
    api_key = _configured_key() if "api_key" in fixed else decrypt(saved.encrypted_key)
    model = (llm.model if "model" in fixed else saved.model) or llm.model or ""
    if not base_url and not api_key:
        return None
    return ModelEndpoint(_address(base_url), api_key, model, **_policy_fields(saved))


def _further(row: Endpoint) -> ModelEndpoint:
    return ModelEndpoint(
        _address(row.base_url),
        decrypt(row.encrypted_key),
        row.model,
        name=row.name,
        is_removed=row.removed_at is not None,
        **_policy_fields(row),
    )


def _policy_fields(row: Endpoint) -> dict[str, Any]:
    return {
        "location": row.location,
        "policy": DataPolicy(row.policy, frozenset(row.allowed_in)),
        "fallback": row.fallback,
        "changed_at": row.changed_at,
    }


def of_request(request: HttpRequest) -> ModelEndpoint | None:
    """Return the endpoint in use, read once for the page that a request returns."""
    if not hasattr(request, "model_endpoint"):
        request.model_endpoint = current()  # type: ignore[attr-defined]
    found: ModelEndpoint | None = request.model_endpoint  # type: ignore[attr-defined]
    return found


def externally_configured_fields() -> dict[str, str]:
    """Return the fields that are not set on the settings page, each with its origin."""
    origins = {name: settings.CATO.origin(f"llm.{name}") for name in FIELDS}
    return {name: origin for name, origin in origins.items() if origin != "default"}


def stored_key(row: Endpoint, *, base_url: str) -> str:
    """Return the stored key, "" without one. Raises KeyNeededError if it belongs to another address than this one."""
    if row.encrypted_key and _address(base_url) != _address(row.base_url):
        raise KeyNeededError
    return decrypt(row.encrypted_key)


def save(*, base_url: str, api_key: str | None, model: str) -> None:
    """Save the endpoint of the settings page; `api_key` None keeps the stored key.

    Raises KeyNeededError if a stored key would be kept for another address.
    """
    saved = first_row()
    if api_key is None:
        stored_key(saved, base_url=base_url)
    else:
        saved.encrypted_key = encrypt(api_key)
    saved.base_url, saved.model = base_url, model
    saved.save()


def _address(base_url: str) -> str:
    return (base_url or OPENAI).rstrip("/")


def _configured_key() -> str:
    key = settings.CATO.llm.api_key
    return key.get_secret_value() if key else ""
