"""Field types of requests: cleaned text, times with a zone, strict numbers, JSON and pictures in strings."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Annotated, Any

from django.utils.translation import gettext as _
from ninja import Header
from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from cato_web.idempotency import MAX_KEY_LENGTH
from memory.api import InvalidInputError, clean_text

_YEARS = range(1900, 2200)
_YEARS_PATTERN = "^(19|20|21)[0-9]{2}-"
_METADATA = {
    "type": "object",
    "description": "Strings, numbers, booleans, and lists of one of these types.",
    "examples": [{"zone": "north", "version": 3}],
}
_FILTER = {
    "type": "object",
    "minProperties": 1,
    "description": "Conditions on metadata, source, said, said_by, thread, session and space, with $and, $or and $not.",
    "examples": [{"zone": "DMZ", "version": {"$gte": 3}}],
}
_JSON_TEXT = {"type": "string", "contentMediaType": "application/json"}


def _clean(value: object) -> object:
    return clean_text(value) if isinstance(value, str) else value


def _time(value: object) -> object:
    """Parse ISO 8601 to UTC; a time without a zone is UTC."""
    if not isinstance(value, str):
        raise ValueError(_("Write a time such as 2026-03-01T14:30:00Z."))
    try:
        at = datetime.fromisoformat(value.upper())
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise ValueError(_("Write a time such as 2026-03-01T14:30:00Z.")) from error
    if at.year not in _YEARS:
        raise ValueError(_("Write a time between the years 1900 and 2199."))
    return at


def _object(value: object) -> object:
    """Parse JSON from a form field or query parameter."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(_('Write a JSON object, such as {"zone": "north"}.')) from error


def decode_image(address: str) -> bytes:
    """Return the bytes in a `data:` address. Raises InvalidInputError."""
    head, _comma, data = address.partition(",")
    if not (head.startswith("data:") and head.endswith(";base64")):
        raise InvalidInputError(_("Send pictures as data: addresses (base64); Cato fetches none from elsewhere."))
    try:
        return base64.b64decode(data, validate=True)
    except ValueError as error:
        raise InvalidInputError(_("A picture's base64 cannot be read.")) from error


Text = Annotated[str, BeforeValidator(_clean)]
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200), BeforeValidator(_clean)]
Time = Annotated[
    datetime,
    BeforeValidator(_time),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "format": "date-time", "pattern": _YEARS_PATTERN},
                {"type": "string", "format": "date", "pattern": _YEARS_PATTERN},
            ],
            "description": "ISO 8601; a time without a zone is UTC, and a date begins at midnight.",
            "examples": ["2026-03-01T14:30:00Z", "2026-03-01"],
        }
    ),
]
Metadata = Annotated[dict[str, Any], WithJsonSchema(_METADATA)]
Conditions = Annotated[dict[str, Any], WithJsonSchema(_FILTER)]
MetadataText = Annotated[
    dict[str, Any],
    BeforeValidator(_object),
    WithJsonSchema(_JSON_TEXT | {"contentSchema": _METADATA, "description": "Metadata as JSON."}),
]
ConditionsText = Annotated[
    dict[str, Any],
    BeforeValidator(_object),
    WithJsonSchema(_JSON_TEXT | {"contentSchema": _FILTER, "description": "A filter as JSON."}),
]
DataUrl = Annotated[str, Field(json_schema_extra={"format": "uri", "pattern": "^data:[^,]*;base64,"})]
Key = Annotated[
    Text | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=MAX_KEY_LENGTH,
        description="Repeating a request with the same key creates nothing again, for a day. With another request, the "
        "key is refused.",
    ),
]
SpaceName = Annotated[
    str,
    StringConstraints(min_length=1, max_length=100),
    BeforeValidator(_clean),
    Field(description="Id or name of a space, “own” or “team”."),
]
