"""The settings in force, each with its origin, for administrators and the command line. Secrets are masked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from django.conf import settings

from chat.llm import endpoint

Origin = Literal["default", "file", "environment", "command line", "page"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A dotted key with its value; the origin "page" is the page of the model endpoint."""

    key: str
    value: object
    origin: Origin


def settings_in_force() -> list[Setting]:
    """Return all settings in the order of the configuration, with those of the page from the database."""
    stored = _stored_endpoint()
    return [
        Setting(setting.key, stored[setting.key], "page") if setting.key in stored else setting
        for setting in configured_settings()
    ]


def configured_settings() -> list[Setting]:
    """Return all settings without those of the page."""
    return [Setting(key, value, _origin(key)) for key, value in _flatten(settings.CATO_SHOWN)]


def _stored_endpoint() -> dict[str, object]:
    """Return the settings that the page of the model endpoint sets, with a masked key."""
    row = endpoint.first_row()
    stored = {
        # A password in an address is masked like those of the configuration.
        "llm.base_url": re.sub(r"^(\w+://)?.*@", r"\1***@", row.base_url),
        "llm.model": row.model,
        "llm.api_key": "***" if row.encrypted_key else "",
    }
    fixed = {f"llm.{field}" for field in endpoint.externally_configured_fields()}
    return {key: value for key, value in stored.items() if value and key not in fixed}


def _origin(key: str) -> Origin:
    """Return where the value of a dotted key comes from; keys of a dictionary come from where it does."""
    names = [key.rsplit(".", count)[0] for count in range(key.count(".") + 1)]
    origins: list[Origin] = [settings.CATO.origin(name) for name in names]
    return next((origin for origin in origins if origin != "default"), "default")


def _flatten(values: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for key, value in values.items():
        if isinstance(value, dict) and value:
            pairs += _flatten(value, f"{prefix}{key}.")
        else:
            pairs.append((prefix + key, value))
    return pairs
