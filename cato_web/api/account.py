"""Operations: the token's owner, their spaces and instructions."""

from __future__ import annotations

from ninja import Router

from cato_web.api import schemas
from cato_web.api.auth import ANY, READ, ApiRequest, current_user
from cato_web.api.errors import responses
from chat import access
from memory import api as memory

router = Router(tags=["account"])


@router.get("/me", auth=ANY, response=responses(schemas.Me))
def who_am_i(request: ApiRequest) -> schemas.Me:
    """Return the owner of the token and its scopes."""
    person = current_user(request)
    token = person.api_tokens.get(pk=request.auth.token_id)
    return schemas.Me(
        id=person.pk,
        name=person.name,
        email=person.email,
        role=person.role,
        token=schemas.TokenInfo.model_validate(token),
    )


@router.get("/instructions", auth=READ, response=responses(schemas.Instructions))
def list_instructions(request: ApiRequest) -> schemas.Instructions:
    """List the standing instructions that the user can read. They are changed on pages only."""
    rows = access.readable_instructions(current_user(request).pk)
    return schemas.Instructions(
        instructions=[
            schemas.InstructionStatus(
                id=row.id,
                space_id=row.space_id,
                text=row.text,
                created_at=row.created_at,
                state=row.state,
                is_on=row.off_at is None,
            )
            for row in rows
        ]
    )


@router.get("/spaces", auth=READ, response=responses(schemas.Spaces))
def list_spaces(request: ApiRequest) -> schemas.Spaces:
    """List the spaces that the user can read: personal, groups and team."""
    rows = memory.list_readable_spaces(current_user(request).pk)
    return schemas.Spaces(spaces=[schemas.SpaceInfo(id=row.pk, kind=row.kind, name=row.display_name) for row in rows])
