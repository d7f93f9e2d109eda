"""Login sessions of a user: recorded at login, listed, and ended one by one or all but the current one."""

from __future__ import annotations

import logging
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.db import DatabaseError
from django.db.models import QuerySet
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from cato_web.accounts import services
from cato_web.accounts.models import AuditEntry, LoginSession, User
from cato_web.accounts.second_factor import confirmation

log = logging.getLogger(__name__)

# Precision of "last seen", so that not every page view writes.
_TOUCH_INTERVAL = timedelta(minutes=5)
# When this process last looked at the row of a session.
_touched: dict[str | None, datetime] = {}
_NEVER, _MAX_TOUCHED = datetime.min.replace(tzinfo=UTC), 10_000
# The first match wins: many user agents also contain the names further down.
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", gettext_noop("an iPhone")),
    ("iPad", gettext_noop("an iPad")),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("CrOS", "ChromeOS"),
    ("Mac OS X", gettext_noop("a Mac")),
    ("Linux", "Linux"),
)


@receiver(user_logged_in)
def on_login(request: HttpRequest, user: User, **kwargs: Any) -> None:
    """Record the session of a login, which is a confirmation, too."""
    confirmation.mark_confirmed(request.session)
    if request.session.session_key is None:
        request.session.save()
    _save(request, user, since=timezone.now())


def touch(request: HttpRequest, person: User) -> None:
    """Record that this login session is in use, and create its row if an older version did not.

    The first use of a day renews it, so that no login expires while somebody works.
    """
    now = timezone.now()
    key = request.session.session_key
    if now - _touched.get(key, _NEVER) < _TOUCH_INTERVAL:
        return
    if len(_touched) >= _MAX_TOUCHED:
        _touched.clear()
    _touched[key] = now
    rows = LoginSession.objects.filter(session_id=key, person=person)
    last_seen_at = rows.values_list("last_seen_at", flat=True).first()
    try:
        if last_seen_at is None:
            if Session.objects.filter(pk=key).exists():
                _save(request, person, since=now)
        elif now - last_seen_at > _TOUCH_INTERVAL:
            rows.update(last_seen_at=now)
            if timezone.localdate(last_seen_at) != timezone.localdate(now):
                request.session.modified = True
    except DatabaseError as error:
        # The page is more important than its "last seen" time.
        log.warning("could not update a login session: %s", type(error).__name__)


def active_sessions(person: User) -> QuerySet[LoginSession]:
    """Return the user's login sessions that have not expired, most recently used first."""
    return LoginSession.objects.filter(person=person, session__expire_date__gt=timezone.now()).order_by(
        "-last_seen_at", "id"
    )


def revoke(person: User, sign_in_id: uuid.UUID) -> bool:
    """End one of the user's login sessions with its open pages; return False if there is no such session."""
    if not _end(LoginSession.objects.filter(person=person, id=sign_in_id)):
        return False
    services.record_audit(person, AuditEntry.Action.SESSION_ENDED, str(sign_in_id))
    return True


def revoke_all(person: User) -> int:
    """End all login sessions of the user; return how many were active."""
    count = active_sessions(person).count()
    _end(LoginSession.objects.filter(person=person))
    return count


def rotate(request: HttpRequest, person: User) -> int:
    """Give the current login session a new key after the epoch was raised, and end the others; return their number."""
    this = LoginSession.objects.filter(session_id=request.session.session_key, person=person).first()
    others = active_sessions(person).exclude(session_id=request.session.session_key).count()
    since = this.since if this else timezone.now()
    update_session_auth_hash(request, person)
    _end(LoginSession.objects.filter(person=person))
    _save(request, person, since=since)
    return others


def _end(rows: QuerySet[LoginSession]) -> bool:
    """Delete the sessions of these rows, with the rows; return whether there was any."""
    return Session.objects.filter(pk__in=rows.values("session")).delete()[0] > 0


def _save(request: HttpRequest, person: User, *, since: datetime) -> None:
    browser = describe_user_agent(request.META.get("HTTP_USER_AGENT", ""))
    LoginSession.objects.update_or_create(
        session_id=request.session.session_key,
        defaults={"person": person, "browser": browser, "since": since, "last_seen_at": timezone.now()},
    )


def describe_user_agent(user_agent: str) -> str:
    """Return for example "Firefox on Windows"; unknown parts are left out."""
    browser = _find_first(_BROWSERS, user_agent) or _("Another program")
    system = _find_first(_SYSTEMS, user_agent)
    return _("%(browser)s on %(system)s") % {"browser": browser, "system": _(system)} if system else browser


def _find_first(rows: tuple[tuple[str, str], ...], user_agent: str) -> str:
    return next((text for marker, text in rows if marker in user_agent), "")
