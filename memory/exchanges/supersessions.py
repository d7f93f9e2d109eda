"""What people decided about pairs of recalled messages: whether the later one supersedes the earlier one."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from django.db import transaction
from django.utils.translation import gettext

from memory.errors import InvalidInputError
from memory.models import Exchange, Supersession
from memory.utils.formatting import format_list

CONFIRMED, REJECTED = "confirmed", "rejected"


def decisions_of(person_id: uuid.UUID, ids: Collection[uuid.UUID]) -> dict[tuple[uuid.UUID, uuid.UUID], bool]:
    """Return what the person decided about these exchanges: by a later and the earlier one, True if it is superseded."""
    rows = Supersession.objects.filter(person_id=person_id, earlier_id__in=ids)
    return {(later, earlier): value for later, earlier, value in rows.values_list("later", "earlier", "is_confirmed")}


@transaction.atomic
def decide(person_id: uuid.UUID, *, later: Exchange, earlier: Exchange, decision: str) -> None:
    """Confirm or reject, for this person, that `later` supersedes `earlier`, or delete the decision ("").

    The caller has checked that the person can read both. Raises InvalidInputError for an unknown decision and for
    exchanges that are not in this order.
    """
    if decision not in (CONFIRMED, REJECTED, ""):
        known = format_list((CONFIRMED, REJECTED), last=gettext("or"))
        sentence = gettext("A decision can be %(known)s, not %(decision)s.")
        raise InvalidInputError(sentence % {"known": known, "decision": decision})
    if (later.timestamp, str(later.pk)) <= (earlier.timestamp, str(earlier.pk)):
        raise InvalidInputError(gettext("Only a later message can supersede another."))
    if not decision:
        Supersession.objects.filter(person_id=person_id, later=later, earlier=earlier).delete()
        return
    Supersession.objects.update_or_create(
        person_id=person_id, later=later, earlier=earlier, defaults={"is_confirmed": decision == CONFIRMED}
    )


def supersedes_any(person_id: uuid.UUID, later: Exchange) -> bool:
    """Return True if this person decided that the message supersedes another."""
    return Supersession.objects.filter(person_id=person_id, later=later, is_confirmed=True).exists()


def delete_supersessions(ids: Collection[uuid.UUID]) -> None:
    """Delete all decisions about these forgotten exchanges."""
    Supersession.objects.filter(later_id__in=ids).delete()
    Supersession.objects.filter(earlier_id__in=ids).delete()
