"""Operations: who the token stands for, and where things of theirs may live."""

from __future__ import annotations

from ninja import Router

from cato_web.api import schemas
from cato_web.api.responses import responses
from cato_web.api.auth import ANY, READ, ApiRequest, current_user
from memory import api as memory

router = Router(tags=["account"])


@router.get("/me", auth=ANY, response=responses(schemas.Me))
def who_am_i(request: ApiRequest) -> schemas.Me:
    """Whose token this is, and what it may do."""
    person = current_user(request)
    token = person.api_tokens.get(pk=request.auth.token_id)
    return schemas.Me(
        id=person.pk,
        name=person.name,
        email=person.email,
        role=person.role,
        token=schemas.TokenInfo.model_validate(token),
    )


@router.get("/spaces", auth=READ, response=responses(schemas.Spaces))
def list_spaces(request: ApiRequest) -> schemas.Spaces:
    """The spaces this person reads: their own, their groups', the team's."""
    rows = memory.list_readable_spaces(current_user(request).pk)
    shown = [schemas.SpaceInfo(id=row.pk, kind=row.kind, name=row.shown_name) for row in rows]
    return schemas.Spaces(spaces=shown)
