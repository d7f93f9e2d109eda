"""The type of a signed-in request, and the decorator of pages for administrators."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django_htmx.middleware import HtmxDetails

P = ParamSpec("P")
View = Callable[Concatenate[Any, P], HttpResponseBase]


class SignedInUser(Protocol):
    """The attributes of a user that memory and chat rely on."""

    pk: uuid.UUID
    name: str
    is_administrator: bool
    context_mode: str
    default_model: str
    detects_instructions: bool
    shows_presence: bool

    def save(self, *, update_fields: list[str] | None = None) -> None:
        """Save changed fields."""


class PageRequest(HttpRequest):
    """A request of a signed-in user, with htmx's headers."""

    user: SignedInUser  # type: ignore[assignment]
    htmx: HtmxDetails


def admin_required(view: View[P]) -> View[P]:
    """Decorate a view so that it answers 403 to everyone but administrators."""

    @wraps(view)
    def wrapped(request: PageRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_administrator:
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return cast(View[P], wrapped)
