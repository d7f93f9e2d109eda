"""The model endpoint: environment and configuration file take precedence over the settings page."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest

from chat.encryption import decrypt, encrypt
from chat.models import Endpoint

OPENAI = "https://api.openai.com/v1"
FIELDS = ("base_url", "api_key", "model")


class KeyNeededError(Exception):
    """The stored API key belongs to another address; it is sent only to that address."""


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A model endpoint; if `model` is empty, the first model that it lists is used."""

    base_url: str
    api_key: str
    model: str

    @property
    def host(self) -> str:
        """The host and port of the base URL."""
        return urlsplit(self.base_url).netloc

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

    def __repr__(self) -> str:
        return f"ModelEndpoint({self.base_url}, {self.model})"


def current() -> ModelEndpoint | None:
    """Return the endpoint in use; None in dummy mode, which is configured or follows from no endpoint being set."""
    if settings.CATO.dummy_mode:
        return None
    saved = Endpoint.objects.first()
    llm = settings.CATO.llm
    fixed = externally_configured_fields()
    base_url = (llm.base_url if "base_url" in fixed else saved and saved.base_url) or ""
    api_key = (_configured_key() if "api_key" in fixed else saved and decrypt(saved.encrypted_key)) or ""
    model = (llm.model if "model" in fixed else saved and saved.model) or llm.model or ""
    if not base_url and not api_key:
        return None
    return ModelEndpoint(base_url=_address(base_url), api_key=api_key, model=model)


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


def needs_key(*, base_url: str, api_key: str | None) -> bool:
    """Return whether a stored key would be kept for another address than its own."""
    saved = Endpoint.objects.first()
    if api_key is not None or saved is None or not saved.encrypted_key:
        return False
    return _address(base_url) != _address(saved.base_url)


def save(*, base_url: str, api_key: str | None, model: str) -> None:
    """Save the endpoint of the settings page; `api_key` None keeps the stored key.

    Raises KeyNeededError if a stored key would be kept for another address.
    """
    if needs_key(base_url=base_url, api_key=api_key):
        raise KeyNeededError
    saved = Endpoint.objects.first() or Endpoint()
    saved.base_url, saved.model = base_url, model
    if api_key is not None:
        saved.encrypted_key = encrypt(api_key)
    saved.save()


def _address(base_url: str) -> str:
    return (base_url or OPENAI).rstrip("/")


def stored_fields() -> tuple[str, str, bool]:
    """Return the base URL and model of the settings page, and whether a key is stored."""
    row = Endpoint.objects.first()
    return (row.base_url, row.model, bool(row.encrypted_key)) if row else ("", "", False)


def is_key_undecryptable() -> bool:
    """Return whether the stored key was encrypted with another secret key."""
    row = Endpoint.objects.first()
    return row is not None and bool(row.encrypted_key) and not decrypt(row.encrypted_key)


def _configured_key() -> str:
    key = settings.CATO.llm.api_key
    return key.get_secret_value() if key else ""
