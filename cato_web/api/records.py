"""Operations: records, which clients store under ids of their own."""

from __future__ import annotations

from typing import Annotated

from django.utils.translation import gettext as _
from ninja import Query, Router

from cato_web.api import record_schemas
from cato_web.api.auth import READ, WRITE, ApiRequest, create_once, current_user, readable_spaces, resolve_space
from cato_web.api.errors import STORE, responses
from cato_web.api.fields import ConditionsText, Key, SpaceName, Text
from memory import api as memory
from memory.api import InvalidInputError

router = Router(tags=["records"])


@router.post("/records", auth=WRITE, response=responses(record_schemas.StoredRecords, *STORE))
def upsert_records(
    request: ApiRequest, new: record_schemas.NewRecords, idempotency_key: Key = None
) -> record_schemas.StoredRecords:
    """Store records, all or none; a record replaces the earlier one with the same id."""
    records = [memory.NewRecord(r.id, r.text, r.metadata, r.vector) for r in new.records]
    space = resolve_space(request, new.space)
    ids = create_once(
        request,
        idempotency_key,
        new.model_dump(mode="json"),
        lambda: memory.upsert_records(records, space=space, owner_id=current_user(request).pk),
    )
    pairs = zip(new.records, ids, strict=True)
    return record_schemas.StoredRecords(
        records=[record_schemas.StoredRecord(id=r.id, exchange_id=id) for r, id in pairs]
    )


@router.post("/records/query", auth=READ, response=responses(record_schemas.Records, *STORE))
def query_records(request: ApiRequest, query: record_schemas.RecordQuery) -> record_schemas.Records:
    """Return the best matching records, by vector or by text."""
    hits = memory.query_records(
        spaces=readable_spaces(request, query.space),
        text=query.text,
        vector=query.vector,
        top_k=query.topK,
        filters=query.filters,
        prefer=query.prefer,
        reader_id=current_user(request).pk,
    )
    return record_schemas.Records(records=[record_schemas.Record.model_validate(hit) for hit in hits])


@router.delete("/records", auth=WRITE, response=responses(record_schemas.Deleted, *STORE))
def delete_records(
    request: ApiRequest,
    id: Annotated[list[Text], Query(max_length=1000, description="Ids of records.")] = [],  # noqa: B006  (not mutated)
    filters: Annotated[ConditionsText | None, Query()] = None,
    space: Annotated[SpaceName | None, Query()] = None,
) -> record_schemas.Deleted:
    """Forget records of one space (by default the personal one) by ids, by a filter, or by both.

    In a shared space, users delete their own records and administrators any.
    """
    if not id and filters is None:
        raise InvalidInputError(_("Say which records to delete, by id or by filters."))
    person = current_user(request)
    target = resolve_space(request, space)
    conditions = filters
    if not person.is_administrator:
        own: dict[str, object] = {"said_by": str(person.pk)}
        conditions = own if filters is None else {"$and": [filters, own]}
    deleted = memory.delete_records(spaces=frozenset({target.pk}), by=person.pk, ids=id or None, filters=conditions)
    return record_schemas.Deleted(deleted=deleted)
