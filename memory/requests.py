"""What every page behind the sign-in may take for granted of its request."""

from __future__ import annotations

import uuid
from typing import Protocol

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails


class Person(Protocol):
    """Whoever is signed in."""

    pk: uuid.UUID
    name: str
    is_administrator: bool
    context_mode: str

    def save(self, *, update_fields: list[str] | None = None) -> None:
        """Keep what was changed."""


class PageRequest(HttpRequest):
    """A request that came through the sign-in, with htmx's headers read."""

    user: Person  # type: ignore[assignment]
    htmx: HtmxDetails
