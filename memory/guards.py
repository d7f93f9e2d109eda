"""Lets only administrators into a page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.core.exceptions import PermissionDenied
from django.http.response import HttpResponseBase

from memory.requests import PageRequest

P = ParamSpec("P")
View = Callable[Concatenate[Any, P], HttpResponseBase]


def admin_required(view: View[P]) -> View[P]:
    """Decorator: 403 for everyone else, before anything of the request is looked at."""

    @wraps(view)
    def wrapped(request: PageRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_administrator:
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return cast(View[P], wrapped)
