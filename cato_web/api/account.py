"""Operations: the token's owner and their spaces."""

from __future__ import annotations

from ninja import Router

from cato_web.api import schemas
from cato_web.api.auth import ANY, READ, ApiRequest, current_user
from cato_web.api.errors import responses
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


@router.get("/spaces", auth=READ, response=responses(schemas.Spaces))
def list_spaces(request: ApiRequest) -> schemas.Spaces:
    """List the spaces that the user can read: personal, groups and team."""
    rows = memory.list_readable_spaces(current_user(request).pk)
    return schemas.Spaces(spaces=[schemas.SpaceInfo(id=row.pk, kind=row.kind, name=row.display_name) for row in rows])
