"""Store and read feedback: exchanges that a person pinned or marked as irrelevant."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db import transaction
from django.db.models import Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext

from memory.errors import InvalidInputError
from memory.models import Exchange, Feedback
from memory.retrieval.recall_log import recall_counts
from memory.spaces.access import SpaceIds
from memory.utils.formatting import format_list

# Limit of the newest exchanges of each kind, which bounds the size of a query.
_MAX_ROWS = 200


@dataclass(frozen=True, slots=True)
class FeedbackSets:
    """Ids of the exchanges that a person pinned or marked as irrelevant."""

    pinned: frozenset[uuid.UUID] = field(default=frozenset())
    irrelevant: frozenset[uuid.UUID] = field(default=frozenset())


NO_FEEDBACK = FeedbackSets()


@dataclass(frozen=True, slots=True)
class ExchangeFeedback:
    """A person's feedback on an exchange ("" for none), and its number of recalls that the person can see."""

    kind: str
    recalled: int


def feedback_of(person_id: uuid.UUID) -> FeedbackSets:
    """Return the person's feedback, limited to the newest 200 exchanges of each kind."""
    number = Window(RowNumber(), partition_by="kind", order_by="-at")
    rows = Feedback.objects.filter(person_id=person_id).annotate(number=number).filter(number__lte=_MAX_ROWS)
    found: dict[str, list[uuid.UUID]] = {kind: [] for kind in Feedback.Kind.values}
    for kind, exchange_id in rows.values_list("kind", "exchange_id"):
        found[kind].append(exchange_id)
    return FeedbackSets(frozenset(found[Feedback.Kind.PINNED]), frozenset(found[Feedback.Kind.IRRELEVANT]))


@transaction.atomic
def set_feedback(person_id: uuid.UUID, exchange: Exchange, kind: str) -> None:
    """Pin an exchange, mark it as irrelevant, or delete the feedback (`kind` "").

    The caller has checked that the person can read the exchange. Raises InvalidInputError for an unknown kind.
    """
    if kind and kind not in Feedback.Kind.values:
        known = format_list(Feedback.Kind.values, last=gettext("or"))
        raise InvalidInputError(gettext("An exchange can be %(known)s, not %(kind)s.") % {"known": known, "kind": kind})
    if not kind:
        Feedback.objects.filter(person_id=person_id, exchange=exchange).delete()
        return
    Feedback.objects.update_or_create(person_id=person_id, exchange=exchange, defaults={"kind": kind})


def feedback_for_exchanges(
    person_id: uuid.UUID, exchange_ids: Iterable[uuid.UUID], *, spaces: SpaceIds
) -> dict[uuid.UUID, ExchangeFeedback]:
    """Return the person's feedback on each exchange and its number of recalls in `spaces`, the readable spaces."""
    ids = list(exchange_ids)
    rows = Feedback.objects.filter(person_id=person_id, exchange_id__in=ids)
    kinds = dict(rows.values_list("exchange_id", "kind"))
    times = recall_counts(ids, spaces=spaces)
    return {id: ExchangeFeedback(kinds.get(id, ""), times.get(id, 0)) for id in ids}
