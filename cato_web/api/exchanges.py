"""Operations: exchanges and notes."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated, Any

from django.db import transaction
from django.utils.translation import gettext as _
from ninja import Query, Router
from ninja.responses import Status

from cato_web.api import schemas, serializers
from cato_web.api.auth import READ, WRITE, ApiRequest, Scope, create_once, current_user, readable_spaces, resolve_space
from cato_web.api.errors import FIND, STORE, responses
from cato_web.api.fields import Key, SpaceName
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
    """List the exchanges that the user can read, newest first."""
    conditions = {"thread_id": thread, "source": source}
    rows = Exchange.objects.findable().filter(**{key: value for key, value in conditions.items() if value is not None})
    readable = memory.in_spaces(rows.select_related("owner", "statement"), readable_spaces(request, space))
    page, after = paginate(readable, "timestamp", cursor, limit)
    return schemas.Exchanges(exchanges=serializers.serialize_exchanges(page), next=after)


@router.post("/exchanges", auth=WRITE, response=responses(schemas.Exchanges, *STORE, status=201))
def add_exchange(
    request: ApiRequest, new: schemas.NewExchange, idempotency_key: Key = None
) -> Status[schemas.Exchanges]:
    """Add an exchange or a note to memory; a worker embeds it shortly after."""
    ids = create_once(request, idempotency_key, new.model_dump(mode="json"), lambda: _add(request, [new]))
    return Status(201, schemas.Exchanges(exchanges=_serialize_added(request, ids)))


@router.post("/exchanges/batch", auth=WRITE, response=responses(schemas.Exchanges, *STORE, status=201))
def add_exchanges(
    request: ApiRequest, new: schemas.NewExchanges, idempotency_key: Key = None
) -> Status[schemas.Exchanges]:
    """Add up to 100 exchanges and notes to memory, all or none, in their order."""
    ids = create_once(request, idempotency_key, new.model_dump(mode="json"), lambda: _add(request, new.exchanges))
    return Status(201, schemas.Exchanges(exchanges=_serialize_added(request, ids)))


@transaction.atomic
def _add(request: ApiRequest, items: Sequence[schemas.NewExchange]) -> list[uuid.UUID]:
    return [exchange.id for new in items for exchange in _add_one(request, new)]


def _serialize_added(request: ApiRequest, ids: Sequence[uuid.UUID]) -> list[schemas.Exchange]:
    """Return these exchanges in this order; those that were forgotten since are left out."""
    rows = memory.in_spaces(
        Exchange.objects.findable().filter(pk__in=ids).select_related("owner", "statement"), readable_spaces(request)
    ).in_bulk()
    return serializers.serialize_exchanges([rows[id] for id in ids if id in rows])


def _add_one(request: ApiRequest, new: schemas.NewExchange) -> list[Exchange]:
    """Store one exchange or note. Raises InvalidInputError."""
    fields: dict[str, Any] = {
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
        return memory.add_note(new.text, **fields)
    memory.ensure_open(fields["space"])
    assert new.user_message is not None  # noqa: S101  (checked above)
    exchange = memory.NewExchange(user_message=new.user_message, assistant_message=new.assistant_message, **fields)
    return [memory.remember(exchange)]


@router.get("/exchanges/{uuid:exchange_id}", auth=READ, response=responses(schemas.Exchange, *FIND))
def get_exchange(request: ApiRequest, exchange_id: uuid.UUID) -> schemas.Exchange:
    """Return one exchange."""
    return serializers.serialize_exchanges([access.get_exchange(current_user(request).pk, exchange_id)])[0]


@router.patch("/exchanges/{uuid:exchange_id}", auth=WRITE, response=responses(schemas.Exchange, *STORE))
def describe_exchange(request: ApiRequest, exchange_id: uuid.UUID, changes: schemas.MetadataUpdate) -> schemas.Exchange:
    """Replace the metadata of one of the user's own exchanges.

    Without the scope `read`, the response omits the texts.
    """
    person = current_user(request)
    exchange = access.get_exchange(person.pk, exchange_id)
    if exchange.owner_id != person.pk:
        raise NotFoundError
    (serialized,) = serializers.serialize_exchanges([memory.set_metadata(exchange, changes.metadata)])
    if Scope.READ in request.auth.scopes:
        return serialized
    return serialized.model_copy(update={"user_message": "", "assistant_message": ""})


@router.delete("/exchanges/{uuid:exchange_id}", auth=WRITE, response=responses(schemas.Receipt, *FIND))
def forget_exchange(request: ApiRequest, exchange_id: uuid.UUID) -> schemas.Receipt:
    """Forget one exchange: it is not found or recalled any more, and a worker removes its vectors."""
    person = current_user(request)
    services.forget_exchange(person.pk, exchange_id, is_administrator=person.is_administrator)
    receipt = memory.receipt_for([exchange_id])
    return serializers.receipt(receipt.exchanges, receipt.under_way)
