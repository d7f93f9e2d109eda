"""Which answers an operation may give, so that the description of the API tells them all."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from cato_web.api.schemas import Error

# What any operation may meet: no token, a token for something else, bad input, and too many requests.
_ALWAYS = (401, 403, 422, 429)
FIND, CHANGE, STORE = (404,), (404, 409), (404, 409, 503)


def responses(model: Any, *also: int, status: int = 200) -> dict[int, Any]:
    """`model` with `status`; an error with each of `also` and of those that are always possible."""
    return {status: model} | dict.fromkeys(sorted({*_ALWAYS, *also}), Error)


def gone_by() -> datetime:
    """The latest moment for what is forgotten now."""
    return timezone.now() + timedelta(hours=settings.CATO.vector_store.erase_within_hours)
