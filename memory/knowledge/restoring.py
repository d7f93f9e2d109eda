"""Restores what an export says of statements: states, confirmations, and which supersede or contradict which."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import transaction

from memory.knowledge.decisions import contradict
from memory.knowledge.statements import update_state
from memory.models import Statement

_IN_FORCE = (Statement.State.CURRENT, Statement.State.CONFLICTING)


def restore_state(statement: Statement, state: Statement.State, *, since: datetime, by: uuid.UUID | None) -> None:
    """Let a new statement be superseded or rejected, or current since then; conflicts are restored with both statements."""
    if state in (Statement.State.SUPERSEDED, Statement.State.REJECTED):
        update_state(statement, state, by=by, state_since=since)
    elif state == Statement.State.CURRENT:
        Statement.objects.filter(pk=statement.pk).update(state_since=since, state_set_by_id=by)


def restore_confirmation(statement: Statement, *, at: datetime, by: uuid.UUID) -> None:
    """Let a new statement be confirmed by this person at this time."""
    Statement.objects.filter(pk=statement.pk).update(confirmed_by_id=by, confirmed_at=at)


@transaction.atomic
def restore_successor(superseded_id: uuid.UUID, successor_id: uuid.UUID) -> None:
    """Link a superseded statement to its successor, unless it has one or the links would form a circle."""
    rows = Statement.objects.select_for_update().order_by("pk").in_bulk([superseded_id, successor_id])
    superseded, later = rows.get(superseded_id), rows.get(successor_id)
    if superseded is None or superseded.state != Statement.State.SUPERSEDED or superseded.superseded_by_id is not None:
        return
    while later is not None:
        if later.pk == superseded.pk:
            return
        later = later.superseded_by
    if successor_id in rows:
        Statement.objects.filter(pk=superseded_id).update(superseded_by_id=successor_id)


@transaction.atomic
def restore_conflict(one_id: uuid.UUID, other_id: uuid.UUID, *, since: datetime) -> None:
    """Let two statements that are in force contradict each other since then."""
    rows = Statement.objects.select_for_update(of=("self",)).select_related("exchange__space").order_by("pk")
    pair = [row for row in rows.filter(pk__in=(one_id, other_id)) if row.state in _IN_FORCE]
    if len(pair) == 2:
        contradict(*pair)
        Statement.objects.filter(pk__in=(one_id, other_id)).update(state_since=since)
