"""Tell which current statements nobody has repeated or confirmed for a long time."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone

from memory.models import Statement

# How long a statement of each kind is taken to hold without being repeated. A judgement, not a measurement: a plan is
# carried out or dropped within weeks, and what somebody prefers changes least.
_HOLDS_FOR = {
    Statement.Kind.PLAN: timedelta(days=60),
    Statement.Kind.DECISION: timedelta(days=180),
    Statement.Kind.FACT: timedelta(days=180),
    Statement.Kind.PREFERENCE: timedelta(days=365),
}


def unconfirmed_since(statement: Statement) -> datetime | None:
    """Return when a current statement was last said or confirmed, if that is long ago for its kind; else None."""
    if statement.state != Statement.State.CURRENT:
        return None
    last = max(filter(None, (statement.last_said_at, statement.confirmed_at)))
    return last if timezone.now() - last > _HOLDS_FOR[Statement.Kind(statement.kind)] else None
