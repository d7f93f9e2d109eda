"""Operations: records, which a program keeps under names of its own and finds by vector, text and metadata."""

from __future__ import annotations

from typing import Annotated

from django.utils.translation import gettext as _
from ninja import Query, Router

from cato_web.api import schemas
from cato_web.api.responses import STORE, responses
from cato_web.api.auth import READ, WRITE, ApiRequest, current_user, readable_spaces, resolve_space
from cato_web.api.fields import ConditionsText, SpaceName, Text
from memory import api as memory
from memory.api import InvalidInputError

router = Router(tags=["records"])


@router.post("/records", auth=WRITE, response=responses(schemas.StoredRecords, *STORE))
def upsert_records(request: ApiRequest, new: schemas.NewRecords) -> schemas.StoredRecords:
    """Keep these records, all of them or none; what has the id of an earlier one takes its place."""
    given = [memory.NewRecord(r.id, r.text, r.metadata, r.vector) for r in new.records]
    ids = memory.upsert_records(given, space=resolve_space(request, new.space), owner_id=current_user(request).pk)
    pairs = zip(new.records, ids, strict=True)
    return schemas.StoredRecords(records=[schemas.StoredRecord(id=r.id, exchange_id=id) for r, id in pairs])


@router.post("/records/query", auth=READ, response=responses(schemas.Records, *STORE))
def query_records(request: ApiRequest, asked: schemas.RecordQuery) -> schemas.Records:
    """The records that fit best: by cosine to a vector, or by meaning and words of a text."""
    hits = memory.query_records(
        spaces=readable_spaces(request, asked.space),
        text=asked.text,
        vector=asked.vector,
        top_k=asked.topK,
        filters=asked.filters,
        prefer=asked.prefer,
    )
    return schemas.Records(records=[schemas.Record.model_validate(hit) for hit in hits])


@router.delete("/records", auth=WRITE, response=responses(schemas.Deleted, *STORE))
def delete_records(
    request: ApiRequest,
    id: Annotated[list[Text], Query(max_length=1000, description="Their ids.")] = [],  # noqa: B006  read, never changed
    filters: Annotated[ConditionsText | None, Query()] = None,
    space: Annotated[SpaceName | None, Query()] = None,
) -> schemas.Deleted:
    """Forget records of one space (this person's own, unless told) by their ids, a filter, or both.

    In a shared space a person deletes what they brought there, an administrator anything.
    """
    if not id and filters is None:
        raise InvalidInputError(_("Say which records to delete, by id or by filters."))
    person = current_user(request)
    place = resolve_space(request, space)
    conditions = filters
    if not person.is_administrator:
        own: dict[str, object] = {"said_by": str(person.pk)}
        conditions = own if filters is None else {"$and": [filters, own]}
    deleted = memory.delete_records(spaces=frozenset({place.pk}), by=person.pk, ids=id or None, filters=conditions)
    return schemas.Deleted(deleted=deleted)
