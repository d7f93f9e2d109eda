"""Operations: what memory keeps, an exchange at a time."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from django.utils.translation import gettext as _
from ninja import Query, Router
from ninja.responses import Status

from cato_web.api import schemas, serializers
from cato_web.api.responses import FIND, STORE, responses, gone_by
from cato_web.api.auth import READ, WRITE, ApiRequest, Scope, current_user, readable_spaces, resolve_space
from cato_web.api.fields import SpaceName
from cato_web.api.paging import Cursor, Limit, paginate
from chat import access, services
from memory import api as memory
from memory.api import Exchange, InvalidInputError, NotFoundError

router = Router(tags=["exchanges"])


@router.get("/exchanges", auth=READ, response=responses(schemas.Exchanges, *FIND))
def list_exchanges(
    request: ApiRequest,
    space: Annotated[SpaceName | None, Query()] = None,
    thread: Annotated[uuid.UUID | None, Query()] = None,
    source: Annotated[Exchange.Source | None, Query()] = None,
    limit: Limit = 50,
    cursor: Annotated[Cursor, Query()] = None,
) -> schemas.Exchanges:
    """What is remembered of all this person may read, latest first."""
    asked = {"thread_id": thread, "source": source}
    wanted = Exchange.objects.findable().filter(**{name: value for name, value in asked.items() if value is not None})
    readable = memory.in_spaces(wanted.select_related("owner"), readable_spaces(request, space))
    page, after = paginate(readable, "timestamp", cursor, limit)
    return schemas.Exchanges(exchanges=serializers.serialize_exchanges(page), next=after)


@router.post("/exchanges", auth=WRITE, response=responses(schemas.Exchanges, *STORE, status=201))
def add_exchange(request: ApiRequest, new: schemas.NewExchange) -> Status[schemas.Exchanges]:
    """Remember an exchange or a note; a worker embeds it in a moment."""
    given: dict[str, Any] = {
        "space": resolve_space(request, new.space),
        "owner_id": current_user(request).pk,
        "source": Exchange.Source.API,
        "manual_entry": True,
        "timestamp": new.timestamp,
        "metadata": new.metadata,
    }
    if (new.text is None) == (new.user_message is None) or (new.text is not None and new.assistant_message):
        raise InvalidInputError(_("Send either a user_message with its assistant_message, or a text."))
    if new.text is not None:
        kept = memory.add_note(new.text, **given)
    else:
        said = {"user_message": new.user_message, "assistant_message": new.assistant_message}
        kept = [memory.remember(**said, **given)]
    return Status(201, schemas.Exchanges(exchanges=serializers.serialize_exchanges(kept)))


@router.get("/exchanges/{uuid:exchange_id}", auth=READ, response=responses(schemas.Exchange, *FIND))
def get_exchange(request: ApiRequest, exchange_id: uuid.UUID) -> schemas.Exchange:
    """One exchange."""
    return serializers.serialize_exchanges([access.get_exchange(current_user(request).pk, exchange_id)])[0]


@router.patch("/exchanges/{uuid:exchange_id}", auth=WRITE, response=responses(schemas.Exchange, *STORE))
def describe_exchange(request: ApiRequest, exchange_id: uuid.UUID, changes: schemas.MetadataUpdate) -> schemas.Exchange:
    """Give an exchange of this person's own other metadata, in place of what it has.

    Without the scope `read` the answer leaves the texts out.
    """
    person = current_user(request)
    found = access.get_exchange(person.pk, exchange_id)
    if found.owner_id != person.pk:
        raise NotFoundError
    (shown,) = serializers.serialize_exchanges([memory.set_metadata(found, changes.metadata)])
    if Scope.READ in request.auth.scopes:
        return shown
    return shown.model_copy(update={"user_message": "", "assistant_message": ""})


@router.delete("/exchanges/{uuid:exchange_id}", auth=WRITE, response=responses(schemas.Receipt, *FIND))
def forget_exchange(request: ApiRequest, exchange_id: uuid.UUID) -> schemas.Receipt:
    """Forget one exchange: nobody finds or recalls it from now on, and a worker removes its vectors."""
    person = current_user(request)
    services.forget_exchange(person.pk, exchange_id, is_administrator=person.is_administrator)
    receipt = memory.receipt_for([exchange_id])
    return schemas.Receipt(exchanges=receipt.exchanges, under_way=receipt.under_way, gone_by=gone_by())
