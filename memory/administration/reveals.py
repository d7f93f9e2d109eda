"""Reveals: audited access of an administrator to a space, with a reason and for DURATION; the owner sees it."""

from __future__ import annotations

import uuid
from datetime import timedelta

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memory import signals
from memory.errors import InvalidInputError, NotFoundError
from memory.models import Reveal, Space
from memory.text import clean_text

DURATION = timedelta(minutes=30)
_MIN_REASON_LENGTH, _MAX_REASON_LENGTH = 10, 300


def get_space(space_id: uuid.UUID) -> Space:
    """Return the space to reveal. Raises NotFoundError."""
    found = Space.objects.select_related("owner").filter(pk=space_id).first()
    if found is None:
        raise NotFoundError(_("There is no such space."))
    return found


@transaction.atomic
def reveal(space: Space, *, by: uuid.UUID, reason: str) -> Reveal:
    """Show the text of this space to `by` on the administration pages, for DURATION.

    Raises InvalidInputError if the reason is not 10 to 300 characters long.
    """
    reason = " ".join(clean_text(reason).split())
    if not _MIN_REASON_LENGTH <= len(reason) <= _MAX_REASON_LENGTH:
        sentence = _("Enter a reason (%(least)s–%(most)s characters). The owner will see it.")
        raise InvalidInputError(sentence % {"least": _MIN_REASON_LENGTH, "most": _MAX_REASON_LENGTH})
    now = timezone.now()
    row = Reveal.objects.create(space=space, by_id=by, reason=reason, at=now, ends_at=now + DURATION)
    transaction.on_commit(lambda: signals.space_revealed.send(sender=None, reveal=row))
    return row


def active_reveals(person_id: uuid.UUID) -> QuerySet[Reveal]:
    """Return the reveals of this administrator that have not ended, the first to end first."""
    rows = Reveal.objects.filter(by_id=person_id, ends_at__gt=timezone.now())
    return rows.select_related("space__owner").order_by("ends_at")


@transaction.atomic
def end_reveal(reveal_id: int, *, by: uuid.UUID) -> bool:
    """End a reveal early. Returns False if it has ended or belongs to another person."""
    row = active_reveals(by).filter(pk=reveal_id).first()
    if row is None:
        return False
    Reveal.objects.filter(pk=row.pk).update(ends_at=timezone.now())
    transaction.on_commit(lambda: signals.reveal_ended.send(sender=None, reveal=row))
    return True


def end_all_reveals(person_id: uuid.UUID) -> None:
    """End all reveals of this person, because they lose the role or the account."""
    for row in active_reveals(person_id):
        end_reveal(row.pk, by=person_id)


def list_reveals(space: Space) -> QuerySet[Reveal]:
    """Return all reveals of this space, newest first."""
    return Reveal.objects.filter(space=space).select_related("by").order_by("-at", "id")
