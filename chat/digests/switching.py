"""Switches the digest of a person on and off, with its time and its spaces."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.digests.schedule import Schedule, time_zones
from chat.models import Digest
from chat.threads.locks import lock_person
from memory import api as memory
from memory.api import InvalidInputError, jobs


def get_digest(person_id: uuid.UUID) -> Digest | None:
    """Return the digest of this person, None if they have never switched it on."""
    return Digest.objects.select_related("thread").filter(person_id=person_id).first()


@transaction.atomic
def switch_on(person_id: uuid.UUID, schedule: Schedule, *, space_ids: Sequence[uuid.UUID] = ()) -> Digest:
    """Switch the digest on, or change when it comes and of which spaces it tells; none chosen means all.

    The first one tells of a whole day or week. Raises InvalidInputError, also for spaces that this person cannot read.
    """
    if schedule.time_zone not in time_zones():
        raise InvalidInputError(_("Choose a time zone from the list."))
    if schedule.weekday not in (None, *range(7)):
        raise InvalidInputError(_("Choose every day or a day of the week."))
    if not set(space_ids) <= memory.readable_space_ids(person_id):
        raise InvalidInputError(_("This space is not there any more, or not yours. Choose another one."))
    # Two forms that are sent at the same time wait for each other here.
    lock_person(person_id)
    now = timezone.now()
    digest = Digest.objects.filter(person_id=person_id).first() or Digest(person_id=person_id, state=Digest.State.DONE)
    if not digest.is_on:
        digest.covered_until = schedule.last_until(now)
    digest.at, digest.time_zone, digest.weekday = schedule.at, schedule.time_zone, schedule.weekday
    digest.space_ids = sorted(str(id) for id in set(space_ids))
    # A digest that is being answered ends on its own; its worker changes nothing here any more.
    digest.state, digest.attempt, digest.locked_until = Digest.State.PENDING, digest.attempt + 1, None
    digest.turn, digest.failures, digest.error = None, 0, ""
    digest.due_at = schedule.next_after(now)
    digest.save()
    return digest


def switch_off(person_id: uuid.UUID) -> None:
    """Switch the digest off; its thread and what was chosen stay."""
    jobs.cancel(Digest.objects.filter(person_id=person_id))


def delete_digest_of(person_id: uuid.UUID) -> None:
    """Delete what this person has chosen."""
    Digest.objects.filter(person_id=person_id).delete()
