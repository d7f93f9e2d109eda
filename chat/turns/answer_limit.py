"""How many answers of a person can be in progress at the same time."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import ngettext

from chat.errors import ConflictError
from chat.models import Turn
from chat.turns.stopping import HEARTBEAT_TIMEOUT
from memory.api import format_number


def has_free_answer(person_id: uuid.UUID) -> bool:
    """Return whether this person, whose row is locked, can start another answer."""
    return running_answers_of(person_id).count() < settings.CATO.chat.concurrent_answers


def ensure_free_answer(person_id: uuid.UUID) -> None:
    """Raise ConflictError if this person, whose row is locked, can start no other answer."""
    if not has_free_answer(person_id):
        sentence = ngettext(
            "An answer of yours is in progress. Wait until it ends, or stop it.",
            "%(count)s answers of yours are in progress. Wait until one ends, or stop one.",
            settings.CATO.chat.concurrent_answers,
        )
        raise ConflictError(sentence % {"count": format_number(settings.CATO.chat.concurrent_answers)})


def running_answers_of(person_id: uuid.UUID) -> QuerySet[Turn]:
    """Return this person's answers that are in progress, in no order."""
    # Those of a dead process do not count: the sweep interrupts them.
    since = timezone.now() - HEARTBEAT_TIMEOUT
    return Turn.objects.running().filter(author_id=person_id, heartbeat_at__gte=since).order_by()
