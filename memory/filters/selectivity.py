"""Find out from database indexes whether a filter matches few exchanges."""

from __future__ import annotations

import uuid
from typing import Any

from django.db.models import QuerySet

from memory.filters.ast import And, Condition, Filter, Phrase
from memory.filters.fields import EXCHANGE_FIELDS
from memory.filters.to_sql import COLUMNS, lookup
from memory.models import Exchange, MetadataValue

# Own fields of exchanges with a database index.
_INDEXED = ("thread", "session")


def ids_if_selective(tree: Filter, limit: int) -> set[uuid.UUID] | None:
    """Return at most `limit` exchange ids that include all matches of `tree`, or None if more may match.

    Reads at most `limit` + 1 ids per condition, from all spaces. Callers must check the remaining conditions and the
    spaces.
    """
    if isinstance(tree, Condition):
        return _ids_of_condition(tree, limit)
    if isinstance(tree, Phrase):
        return None
    parts = (ids_if_selective(part, limit) for part in tree.parts)
    if isinstance(tree, And):
        return next((found for found in parts if found is not None), None)
    union: set[uuid.UUID] = set()
    for found in parts:
        if found is None:
            return None
        union |= found
    return union if len(union) <= limit else None


def _ids_of_condition(condition: Condition, limit: int) -> set[uuid.UUID] | None:
    if condition.negated:
        return None
    ids = _field_query(condition) if condition.is_own else _metadata_query(condition)
    if ids is None:
        return None
    found = list(ids[: limit + 1])
    return None if len(found) > limit else set(found)


def _field_query(condition: Condition) -> QuerySet[Any, uuid.UUID] | None:
    if condition.key not in _INDEXED:
        return None
    column = EXCHANGE_FIELDS[condition.key].column
    return Exchange.objects.filter(**lookup(column, condition)).values_list("id", flat=True)


def _metadata_query(condition: Condition) -> QuerySet[Any, uuid.UUID] | None:
    column = COLUMNS[type(condition.values[0])]
    if column == "boolean":  # the column has no index
        return None
    values = MetadataValue.objects.filter(key=condition.key, is_member=condition.operator == "$contains")
    return values.filter(**lookup(column, condition)).values_list("exchange_id", flat=True)
