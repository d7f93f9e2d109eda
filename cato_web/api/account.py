"""Operations: who the token stands for, and where things of theirs may live."""

from __future__ import annotations

from ninja import Router

from cato_web.api import schemas
from cato_web.api.answers import answers
from cato_web.api.auth import ANY, READ, ApiRequest, current_user
from memory.spaces import access

router = Router(tags=["account"])


@router.get("/me", auth=ANY, response=answers(schemas.Me))
def who_am_i(request: ApiRequest) -> schemas.Me:
    """Whose token this is, and what it may do."""
    person = current_user(request)
    token = person.api_tokens.get(pk=request.auth.token_id)
    return schemas.Me(
        id=person.pk,
        name=person.name,
        email=person.email,
        role=person.role,
        token=schemas.TokenShown.model_validate(token),
    )


@router.get("/spaces", auth=READ, response=answers(schemas.Spaces))
def list_spaces(request: ApiRequest) -> schemas.Spaces:
    """The spaces this person reads: their own, their groups', the team's."""
    rows = access.list_readable_spaces(current_user(request).pk)
    shown = [schemas.SpaceShown(id=row.pk, kind=row.kind, name=row.shown_name) for row in rows]
    return schemas.Spaces(spaces=shown)
