"""Operations: statements, with their sources and what readers decide about them."""

from __future__ import annotations

import uuid
from typing import Annotated, Literal

from ninja import Query, Router
from ninja.responses import Status
from pydantic import Field

from cato_web.api.auth import READ, WRITE, ApiRequest, Scope, current_user, readable_spaces
from cato_web.api.errors import FIND, responses
from cato_web.api.fields import SpaceName, Text
from cato_web.api.schemas import RequestModel, ResponseModel, Statement
from cato_web.api.serializers import serialize_statements
from memory import api as memory
from memory.api import NOT_FOUND, NotFoundError, StatementFilter, knowledge_decisions

router = Router(tags=["knowledge"])
Revision = Annotated[
    int, Field(ge=1, description="`revision` as it was read. If it has changed since, nothing is written: 409.")
]


class Statements(ResponseModel):
    """Statements in the order that was asked for, and how many there are."""

    statements: list[Statement]
    total: int


class Decision(RequestModel):
    """The revision that a decision is about."""

    revision: Revision


class Correction(Decision):
    """A text that is true instead of the statement."""

    text: Annotated[Text, Field(min_length=1, max_length=memory.MAX_STATEMENT_LENGTH)]


class Choice(Decision):
    """The one of two conflicting statements that is superseded."""

    other_id: uuid.UUID | None = Field(default=None, description="The superseded one; null: both are kept.")


@router.get("/knowledge", auth=READ, response=responses(Statements, *FIND))
def list_statements(
    request: ApiRequest,
    space: Annotated[SpaceName | None, Query()] = None,
    text: Annotated[
        Text | None, Query(max_length=200, description="Words that the statement or its topic has.")
    ] = None,
    kind: memory.Statement.Kind | None = None,
    to_review: Annotated[bool, Query(description="Only conflicting and unconfirmed ones.")] = False,
    order: Literal["topic", "newest", "recalled"] = "newest",
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Statements:
    """List the statements of the readable spaces."""
    wanted = StatementFilter(text=text or "", kind=kind or "", to_review=to_review, order=order)
    ids = memory.statement_ids(readable_spaces(request, space), wanted)
    return Statements(statements=serialize_statements(ids[offset : offset + limit]), total=len(ids))


@router.get("/knowledge/{uuid:statement_id}", auth=READ, response=responses(Statement, *FIND))
def get_statement(request: ApiRequest, statement_id: uuid.UUID) -> Statement:
    """Return one statement."""
    return _get(request, statement_id)


@router.post("/knowledge/{uuid:statement_id}/confirm", auth=WRITE, response=responses(Statement, *FIND, 409))
def confirm_statement(request: ApiRequest, statement_id: uuid.UUID, body: Decision) -> Statement:
    """Confirm a statement."""
    knowledge_decisions.confirm(current_user(request).pk, statement_id, revision=body.revision)
    return _get(request, statement_id)


@router.post("/knowledge/{uuid:statement_id}/correct", auth=WRITE, response=responses(Statement, *FIND, 409))
def correct_statement(request: ApiRequest, statement_id: uuid.UUID, body: Correction) -> Statement:
    """Supersede a statement by a note of the user, and return the new statement."""
    new = knowledge_decisions.correct(current_user(request).pk, statement_id, body.text, revision=body.revision)
    return _get(request, new.pk)


@router.post("/knowledge/{uuid:statement_id}/keep", auth=WRITE, response=responses(Statement, *FIND, 409))
def keep_statement(request: ApiRequest, statement_id: uuid.UUID, body: Choice) -> Statement:
    """Settle a conflict in favour of this statement, or keep both."""
    person_id = current_user(request).pk
    knowledge_decisions.keep(person_id, statement_id, other_id=body.other_id, revision=body.revision)
    return _get(request, statement_id)


@router.post("/knowledge/{uuid:statement_id}/reject", auth=WRITE, response=responses(None, *FIND, 409, status=204))
def reject_statement(request: ApiRequest, statement_id: uuid.UUID, body: Decision) -> Status[None]:
    """Reject a statement. It is neither listed nor recalled nor extracted again. To forget one, delete its exchange."""
    knowledge_decisions.reject(current_user(request).pk, statement_id, revision=body.revision)
    return Status(204, None)


def _get(request: ApiRequest, statement_id: uuid.UUID) -> Statement:
    """Return the statement; without the scope `read`, without its texts and sources. Raises NotFoundError."""
    if not memory.readable_statements(readable_spaces(request)).filter(pk=statement_id).exists():
        raise NotFoundError(NOT_FOUND)
    (statement,) = serialize_statements([statement_id])
    if Scope.READ in request.auth.scopes:
        return statement
    return statement.model_copy(update={"text": "", "topic": "", "sources": []})
