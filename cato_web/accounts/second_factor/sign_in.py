"""A sign-in after its first factor: the login session begins only after the second.

Until then, the session contains who is signing in, but is not signed in: pages, sockets and downloads treat it as anonymous.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.contrib.auth import login, logout
from django.http import HttpRequest
from django.urls import reverse
from django.utils.crypto import constant_time_compare

from cato_web.accounts.models import User
from cato_web.accounts.second_factor.services import has_second_factor

MAX_AGE = 900  # seconds between the first factor and the second
_PENDING = "pending_sign_in"


@dataclass(frozen=True, slots=True)
class PendingSignIn:
    """A person whose first factor was right, and the path to open after the second."""

    person: User
    target: str


def begin(request: HttpRequest, person: User, target: str) -> str:
    """Sign in a person whose first factor was right, unless a second one is needed; return the path to redirect to."""
    if not has_second_factor(person) and not person.requires_second_factor:
        complete(request, person)
        return target
    if request.user.is_authenticated:
        logout(request)
    request.session.cycle_key()
    request.session[_PENDING] = {
        "person": str(person.pk),
        "hash": person.get_session_auth_hash(),
        "at": time.time(),
        "target": target,
    }
    return reverse("second_factor")


def find_pending(request: HttpRequest) -> PendingSignIn | None:
    """Return the sign-in that waits for its second factor, unless it is too old or the password has changed since."""
    saved = request.session.get(_PENDING)
    if saved is None or time.time() - saved["at"] > MAX_AGE:
        return None
    person = User.objects.filter(pk=saved["person"], is_active=True).first()
    if person is None or not constant_time_compare(saved["hash"], person.get_session_auth_hash()):
        return None
    return PendingSignIn(person, saved["target"])


def complete(request: HttpRequest, person: User) -> None:
    """Begin the login session, under a new key."""
    request.session.pop(_PENDING, None)
    login(request, person, backend="django.contrib.auth.backends.ModelBackend")


def enrolling_person(request: HttpRequest) -> User | None:
    """Return who may add a second factor: who is signed in, or who has none and needs one to be signed in."""
    if request.user.is_authenticated:
        return request.user
    pending = find_pending(request)
    return pending.person if pending and not has_second_factor(pending.person) else None
