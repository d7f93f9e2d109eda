"""Recall for messages that ask what happened in a period, whatever the subject: the newest of that time, by date.

Such a message has no subject to search for, and the gate would take it for small talk.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.filters import Filter
from memory.models import Exchange
from memory.retrieval.by_date import ids_by_date, listed_hits
from memory.retrieval.dates import DateRange
from memory.retrieval.periods import named_period
from memory.retrieval.probes import MessageTraits
from memory.retrieval.types import Hit
from memory.spaces.access import SpaceIds

# Probability from which a message asks what happened. Of the held-out sentences without the trait none reaches it;
# docs/decisions/0010-probes.md has the figures.
MIN_PROBABILITY = 0.2
# More than fit into a prompt, since passages of one author and long ones are passed over.
_MAX_LISTED = 60
# The period if none is named and it is not known when the person was here before.
_DEFAULT_PERIOD = timedelta(days=7)


def is_asked(traits: MessageTraits | None) -> bool:
    """Return True if a message with these traits asks what happened in a period."""
    return traits is not None and traits.what_happened >= MIN_PROBABILITY


def period_asked(text: str, now: datetime, get_last_visit: Callable[[], datetime | None]) -> DateRange:
    """Return the period that the text names, or else the time since the person was here last, or the last seven days."""
    local = timezone.localtime(now)
    return named_period(text, local) or DateRange(get_last_visit() or local - _DEFAULT_PERIOD, local)


def hits_in(
    period: DateRange,
    *,
    spaces: SpaceIds,
    filters: Filter | None,
    exclude: frozenset[uuid.UUID],
    except_thread: uuid.UUID | None = None,
) -> list[Hit]:
    """Return what was remembered in the period as hits, the newest first; of a document or long note its beginning.

    What was said in the thread `except_thread` is left out.
    """
    beginnings = _beginnings_in(period, spaces, filters, except_thread).exclude(pk__in=exclude)
    return listed_hits(list(beginnings[:_MAX_LISTED]), _("From the time that you asked about"))


def has_happened(period: DateRange, *, spaces: SpaceIds, except_thread: uuid.UUID | None = None) -> bool:
    """Return whether `hits_in` finds anything, without reading it."""
    return _beginnings_in(period, spaces, None, except_thread).exists()


def _beginnings_in(
    period: DateRange, spaces: SpaceIds, filters: Filter | None, except_thread: uuid.UUID | None
) -> QuerySet[Exchange, uuid.UUID]:
    rows = ids_by_date(spaces, filters).filter(timestamp__gte=period.start, timestamp__lt=period.end)
    if except_thread is not None:
        rows = rows.exclude(thread_id=except_thread)
    # What statements say is in their sources.
    return rows.filter(Q(chunk_index=None) | Q(chunk_index=0)).exclude(source=Exchange.Source.KNOWLEDGE)
