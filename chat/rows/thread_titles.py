"""The titles of the threads in which exchanges were said."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping

from django.db.models import FilteredRelation, Q
from django.utils.translation import gettext as _

from chat.models import Thread
from memory.api import ExchangeView


def thread_titles(exchanges: Iterable[ExchangeView]) -> dict[uuid.UUID, str]:
    """Return the titles of the exchanges' threads by thread id, and of their later sessions, numbered, by session id."""
    exchanges = [exchange for exchange in exchanges if exchange.thread_id]
    if not exchanges:
        return {}
    # Never empty: Django takes a condition on an empty set for a query without rows.
    session_ids = {e.session_id for e in exchanges if e.session_id} or {uuid.UUID(int=0)}
    of_exchanges = Q(sessions__id__in=session_ids, sessions__seq__gt=0)
    rows = Thread.objects.filter(id__in={e.thread_id for e in exchanges}).annotate(
        later=FilteredRelation("sessions", condition=of_exchanges)
    )
    titles: dict[uuid.UUID, str] = {}
    for id, title, session_id, seq in rows.values_list("id", "title", "later__id", "later__seq"):
        titles[id] = title
        if session_id is not None:
            titles[session_id] = session_title(title, seq)
    return titles


def title_of(exchange: ExchangeView, titles: Mapping[uuid.UUID, str]) -> str:
    """Return the title of the exchange's session or thread among those of `thread_titles`, "" without one."""
    return next((titles[id] for id in (exchange.session_id, exchange.thread_id) if id and id in titles), "")


def session_title(title: str, seq: int) -> str:
    """Return the title of a thread's session after the first one."""
    return _("%(title)s, session %(number)s") % {"title": title, "number": seq + 1}
