"""What a composer says about a monthly limit of usage, and how limits and sums are shown."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _

from chat.models import UsageLimit
from chat.usage.limits import LimitState, limit_states
from memory.api import Space


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A limit as a sentence, when it resets, and whether it is reached or near; `bar` is the share in twentieths."""

    text: str
    resets_at: datetime
    is_reached: bool
    is_above_soft: bool
    bar: int


def limit_row(state: LimitState) -> LimitRow:
    """Return the row of a limit that applies to the reader."""
    if state.limit.target == UsageLimit.Target.SPACE:
        text = _("%(name)s: %(used)s of %(most)s used this month.")
    elif state.limit.target == UsageLimit.Target.TOKEN:
        text = _("This API token: %(used)s of %(most)s used this month.")
    else:
        text = _("You have used %(used)s of %(most)s this month.")
    share = min(1.0, float(state.used / state.most)) if state.most else 1.0
    return LimitRow(text % state.facts, state.resets_at, state.is_reached, state.is_above_soft, int(20 * share))


def limit_rows(person_id: uuid.UUID, space: Space | None = None) -> list[LimitRow]:
    """Return the limits of this person, and of the space if one is given."""
    return [limit_row(state) for state in limit_states(person_id=person_id, space=space)]


def usage_notice(person_id: uuid.UUID, space: Space | None) -> LimitRow | None:
    """Return the limit that the composer shows: a reached one, or else one above the amount of its notice."""
    rows = limit_rows(person_id, space)
    return next((row for row in rows if row.is_reached), None) or next((row for row in rows if row.is_above_soft), None)
