"""What people decide about statements: confirm, correct and reject them, and keep one of two that conflict."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.errors import InvalidInputError, StatementConflictError
from memory.exchanges.notes import add_note
from memory.knowledge.statements import (
    MAX_STATEMENT_LENGTH,
    NewStatement,
    NewSupport,
    add_statements,
    statement_to_change,
    update_state,
)
from memory.models import Exchange, Statement, StatementConflict
from memory.text import clean_text

State = Statement.State


@transaction.atomic
def confirm(person_id: uuid.UUID, statement_id: uuid.UUID, *, revision: int) -> Statement:
    """Record that this person confirms the statement. Raises NotFoundError and StatementConflictError."""
    statement = _current_revision(person_id, statement_id, revision)
    statement.confirmed_by_id, statement.confirmed_at = person_id, timezone.now()
    statement.revision += 1
    statement.save(update_fields=["confirmed_by", "confirmed_at", "revision"])
    return statement


@transaction.atomic
def correct(person_id: uuid.UUID, statement_id: uuid.UUID, text: str, *, revision: int) -> Statement:
    """Store the correction as a note of this person, with a statement that supersedes this one; return the new one.

    Raises NotFoundError, StatementConflictError, VectorStoreDisabledError, and InvalidInputError for a text that is empty,
    too long or known already.
    """
    statement = _current_revision(person_id, statement_id, revision)
    text = clean_text(text).strip()
    if len(text) > MAX_STATEMENT_LENGTH:
        sentence = _("A statement has at most %(most)s characters.")
        raise InvalidInputError(sentence % {"most": MAX_STATEMENT_LENGTH})
    space = statement.exchange.space
    note = add_note(text, space=space, owner_id=person_id, source=Exchange.Source.NOTE, manual_entry=True)[0]
    support = NewSupport(note.pk, text, note.version)
    new = NewStatement(text=text, kind=statement.kind, topic=statement.topic, supports=[support])
    added = add_statements(space, [new], read=[support])
    if not added:
        same = Statement.objects.filter(exchange__space=space, exchange__user_message=text, exchange__forgotten_at=None)
        if same.filter(state=State.REJECTED).exists():
            raise InvalidInputError(_("Somebody rejected this statement, so it cannot come back. Word it differently."))
        raise InvalidInputError(_("This statement already exists."))
    supersede(statement, by_statement=added[0], by=person_id)
    return confirm(person_id, added[0].pk, revision=added[0].revision)


@transaction.atomic
def reject(person_id: uuid.UUID, statement_id: uuid.UUID, *, revision: int) -> None:
    """Reject the statement, so that it is neither shown nor recalled nor extracted again.

    Raises NotFoundError and StatementConflictError.
    """
    statement = _current_revision(person_id, statement_id, revision)
    _end_conflicts(statement, by=person_id)
    update_state(statement, State.REJECTED, by=person_id)


@transaction.atomic
def keep(person_id: uuid.UUID, statement_id: uuid.UUID, *, other_id: uuid.UUID | None, revision: int) -> Statement:
    """Settle a conflict: this statement is confirmed and supersedes `other_id`, or both are kept (None).

    Raises NotFoundError, StatementConflictError, and InvalidInputError if the two do not conflict.
    """
    statement = _current_revision(person_id, statement_id, revision)
    if statement.state != State.CONFLICTING:
        raise InvalidInputError(_("This statement is not in conflict any more."))
    if other_id is None:
        _end_conflicts(statement, by=person_id)
        return statement
    other = statement_to_change(person_id, other_id)
    if other.pk not in {row.pk for row in conflicting_with(statement)}:
        raise InvalidInputError(_("These two statements do not contradict each other."))
    supersede(other, by_statement=statement, by=person_id)
    statement.refresh_from_db()
    return confirm(person_id, statement_id, revision=statement.revision)


def supersede(statement: Statement, *, by_statement: Statement, by: uuid.UUID | None) -> None:
    """Let a statement supersede this one; `by` is the person who decided it, None for the model."""
    _end_conflicts(statement, by=by)
    update_state(statement, State.SUPERSEDED, by=by, superseded_by=by_statement)


def contradict(statement: Statement, other: Statement) -> None:
    """Mark two current statements as conflicting, until a person decides."""
    one, two = sorted((statement, other), key=lambda row: row.pk)
    StatementConflict.objects.get_or_create(one=one, other=two)
    for row in (statement, other):
        if row.state == State.CURRENT:
            update_state(row, State.CONFLICTING, by=None)


def conflicting_with(statement: Statement) -> list[Statement]:
    """Return the statements that contradict this one."""
    pairs = StatementConflict.objects.filter(Q(one=statement) | Q(other=statement)).select_related("one", "other")
    return [pair.other if pair.one_id == statement.pk else pair.one for pair in pairs]


def _end_conflicts(statement: Statement, *, by: uuid.UUID | None) -> None:
    """End the conflicts of this statement; one that conflicts with nothing else is current again."""
    others = conflicting_with(statement)
    StatementConflict.objects.filter(Q(one=statement) | Q(other=statement)).delete()
    for row in (statement, *others):
        if row.state == State.CONFLICTING and not conflicting_with(row):
            update_state(row, State.CURRENT, by=by)


def _current_revision(person_id: uuid.UUID, statement_id: uuid.UUID, revision: int) -> Statement:
    """Return the locked statement. Raises NotFoundError, and StatementConflictError if it has another revision."""
    statement = statement_to_change(person_id, statement_id)
    if statement.revision != revision:
        raise StatementConflictError(_("Somebody changed this statement meanwhile. Look at it again, then decide."))
    return statement
