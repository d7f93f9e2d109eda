"""Translate filters to Chroma's `where`, and build the metadata stored with a vector. Imports no Chroma code."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memory.filters.ast import And, Condition, Filter, Phrase, Scalar, Value
from memory.filters.fields import EXCHANGE_FIELDS
from memory.models import Exchange

_PREFIX = "metadata."
# In Chroma these two operators match a missing field or another type, as a negated condition must.
_NEGATED = {"$in": "$nin", "$contains": "$not_contains"}
_OPPOSITE = {"$gt": "$lte", "$gte": "$lt", "$lt": "$gte", "$lte": "$gt"}


def to_chroma(tree: Filter) -> dict[str, Any] | None:
    """Return the filter as a `where`, or None if Chroma cannot express a part of it."""
    if isinstance(tree, Condition):
        return _condition(tree)
    if isinstance(tree, Phrase):
        return None  # the texts are not stored with the vectors
    parts = [to_chroma(part) for part in tree.parts]
    if not parts or None in parts:
        return None
    return {"$and" if isinstance(tree, And) else "$or": parts}


def chroma_fields(exchange: Exchange, metadata: Mapping[str, Scalar | Sequence[Scalar]]) -> dict[str, Any]:
    """Return the Chroma metadata for each vector of `exchange`; `metadata` is its validated metadata.

    An upsert with the same vector id keeps fields that are no longer passed. Changed metadata therefore needs a new
    version of the exchange.
    """
    own: dict[str, Any] = {
        "source": exchange.source,
        "said": exchange.timestamp.timestamp(),
        "owner": str(exchange.owner_id),
        "space": str(exchange.space_id),
        "manual_entry": exchange.manual_entry,
    }
    if exchange.thread_id:
        own["thread"] = str(exchange.thread_id)
    if exchange.session_id:
        own["session"] = str(exchange.session_id)
    if exchange.source_file:
        own["source_file"] = exchange.source_file
    # Chroma rejects empty lists.
    return own | {f"{_PREFIX}{key}": _stored_value(value) for key, value in metadata.items() if value != []}


def _condition(condition: Condition) -> dict[str, Any] | None:
    own = EXCHANGE_FIELDS[condition.key] if condition.is_own else None
    name = own.stored if own else f"{_PREFIX}{condition.key}"
    if name == "source_file" and "" in condition.values:
        return None  # an empty file name is not stored
    operator: str = condition.operator
    if condition.negated and operator in _NEGATED:
        operator = _NEGATED[operator]
    elif condition.negated:
        if own is None:
            return None  # "less" or "missing" would match, and Chroma cannot query for missing fields
        operator = _OPPOSITE[operator]  # own fields with an order are always present
    values = [_query_value(value) for value in condition.values]
    return {name: {operator: values if operator in ("$in", "$nin") else values[0]}}


def _query_value(value: Value) -> str | float | bool:
    if isinstance(value, datetime):
        return value.timestamp()
    return str(value) if isinstance(value, uuid.UUID) else value


def _stored_value(value: Scalar | Sequence[Scalar]) -> Scalar | list[Scalar]:
    """Return numbers as floats, because Chroma distinguishes an integer in a list from the equal float."""
    if isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        return float(value)
    return [member if isinstance(member, str | bool) else float(member) for member in value]
