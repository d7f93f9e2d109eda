"""What a person thinks of what was recalled for them: pinned, or not relevant."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field

from django.db import transaction
from django.utils.translation import gettext

from memory.errors import InvalidInputError
from memory.models import Exchange, Opinion
from memory.retrieval.recall_log import recall_counts
from memory.spaces.access import SpaceIds
from memory.utils.formatting import format_list

# The newest so many of each kind count; a query must not carry more.
_MOST = 200


@dataclass(frozen=True, slots=True)
class FeedbackSets:
    """The exchanges a person pinned, and those they do not want to see again."""

    pinned: frozenset[uuid.UUID] = field(default=frozenset())
    irrelevant: frozenset[uuid.UUID] = field(default=frozenset())


NO_FEEDBACK = FeedbackSets()


@dataclass(frozen=True, slots=True)
class ExchangeFeedback:
    """An exchange as one person has it: its `kind` of opinion ("" for none), and how often they can see it was recalled."""

    kind: str
    recalled: int


def feedback_of(person_id: uuid.UUID) -> FeedbackSets:
    """This person's opinions, the newest of them where there are very many."""
    rows = Opinion.objects.filter(person_id=person_id).order_by("-at").values_list("kind", "exchange_id")
    found: dict[str, list[uuid.UUID]] = {kind: [] for kind in Opinion.Kind.values}
    for kind in found:
        found[kind] = [exchange_id for _, exchange_id in rows.filter(kind=kind)[:_MOST]]
    return FeedbackSets(frozenset(found[Opinion.Kind.PINNED]), frozenset(found[Opinion.Kind.IRRELEVANT]))


@transaction.atomic
def set_feedback(person_id: uuid.UUID, exchange: Exchange, kind: str) -> None:
    """Pin an exchange, call it not relevant, or ("") take that back. The caller has asked whether it may be read.

    Raises InvalidInputError for another kind.
    """
    if kind and kind not in Opinion.Kind.values:
        known = format_list(Opinion.Kind.values, last=gettext("or"))
        raise InvalidInputError(gettext("An exchange can be %(known)s, not %(kind)s.") % {"known": known, "kind": kind})
    if not kind:
        Opinion.objects.filter(person_id=person_id, exchange=exchange).delete()
        return
    Opinion.objects.update_or_create(person_id=person_id, exchange=exchange, defaults={"kind": kind})


def feedback_for_exchanges(
    person_id: uuid.UUID, exchange_ids: Iterable[uuid.UUID], *, spaces: SpaceIds
) -> dict[uuid.UUID, ExchangeFeedback]:
    """What this person, who reads `spaces`, thinks of each of these exchanges, and how often it came back there."""
    ids = list(exchange_ids)
    rows = Opinion.objects.filter(person_id=person_id, exchange_id__in=ids)
    kinds = dict(rows.values_list("exchange_id", "kind"))
    times = recall_counts(ids, spaces=spaces)
    return {id: ExchangeFeedback(kinds.get(id, ""), times.get(id, 0)) for id in ids}
