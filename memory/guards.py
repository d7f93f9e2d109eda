"""Lets only administrators into a page."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def administrators_only(view: View[P]) -> View[P]:
    """Decorator: 403 for everyone else, before anything of the request is looked at."""

    @wraps(view)
    def wrapped(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not getattr(request.user, "is_administrator", False):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return wrapped
