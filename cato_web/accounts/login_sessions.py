"""Where somebody is signed in: noted as they come, listed, and ended one by one or all but this."""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.db.models import QuerySet
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from cato_web.accounts import services, user_agents
from cato_web.accounts.models import AuditEntry, SignIn, User

log = logging.getLogger(__name__)

# How exactly one is told when a browser was last seen; a page need not write each time it is opened.
_SEEN_EVERY = timedelta(minutes=5)


@receiver(user_logged_in)
def on_login(request: HttpRequest, user: User, **kwargs: Any) -> None:
    if request.session.session_key is None:
        request.session.save()
    _note(request, user, since=timezone.now())


def touch(request: HttpRequest, person: User) -> None:
    """Note that this sign-in is in use; one that is older than the list of them enters it now."""
    now = timezone.now()
    known = SignIn.objects.filter(session_id=request.session.session_key, person=person)
    seen_at = known.values_list("seen_at", flat=True).first()
    try:
        if seen_at is None:
            if Session.objects.filter(pk=request.session.session_key).exists():
                _note(request, person, since=now)
        elif now - seen_at > _SEEN_EVERY:
            known.update(seen_at=now)
    except DatabaseError as error:
        # A page that can be read is worth more than this.
        log.warning("a sign-in could not be noted: %s", type(error).__name__)


def listed(person: User) -> QuerySet[SignIn]:
    """This person's sign-ins that are still good, the one seen last first."""
    return SignIn.objects.filter(person=person, session__expire_date__gt=timezone.now()).order_by("-seen_at", "id")


def revoke(person: User, sign_in_id: uuid.UUID) -> bool:
    """End one of this person's sign-ins, and with it its open pages; False where there is none of that id."""
    ended = Session.objects.filter(pk__in=SignIn.objects.filter(person=person, id=sign_in_id).values("session"))
    if not ended.delete()[0]:
        return False
    services.record_audit(person, AuditEntry.Action.SESSION_ENDED, str(sign_in_id))
    return True


def revoke_all(person: User) -> int:
    """End every sign-in of this person that is listed; returns how many."""
    count = listed(person).count()
    Session.objects.filter(pk__in=SignIn.objects.filter(person=person).values("session")).delete()
    return count


def rotate(request: HttpRequest, person: User) -> int:
    """Let the sign-in that asks go on, with a new key, after the account's epoch rose; remove the others.

    Returns how many others there were.
    """
    this = SignIn.objects.filter(session_id=request.session.session_key, person=person).first()
    others = listed(person).exclude(session_id=request.session.session_key).count()
    since = this.since if this else timezone.now()
    update_session_auth_hash(request, person)
    Session.objects.filter(pk__in=SignIn.objects.filter(person=person).values("session")).delete()
    _note(request, person, since=since)
    return others


def _note(request: HttpRequest, person: User, *, since: datetime) -> None:
    browser = user_agents.describe_user_agent(request.META.get("HTTP_USER_AGENT", ""))
    SignIn.objects.update_or_create(
        session_id=request.session.session_key,
        defaults={"person": person, "browser": browser, "since": since, "seen_at": timezone.now()},
    )
