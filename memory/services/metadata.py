"""Free metadata: what it may hold, and the rows beside an exchange by which filters find it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from memory.errors import BadQuery
from memory.filters import LONGEST_KEY, Scalar
from memory.models import Exchange, MetadataValue
from memory.text import clean_text

MOST_KEYS = 100
MOST_MEMBERS = 200
LONGEST_TEXT = 500

Checked = dict[str, Scalar | list[Scalar]]


def check_metadata(metadata: Mapping[str, object]) -> Checked:
    """The metadata as it may be kept, its texts cleaned: scalars, and lists of scalars of one type.

    Numbers must be finite; filters compare them as 64-bit floating point. Raises BadQuery naming the key and what is
    allowed.
    """
    if not isinstance(metadata, Mapping):
        raise BadQuery("Metadata is a mapping from keys to values.")
    if len(metadata) > MOST_KEYS:
        raise BadQuery(f"Metadata has at most {MOST_KEYS} keys, not {len(metadata)}.")
    checked = {_key(key): _value(key, value) for key, value in metadata.items()}
    if len(checked) != len(metadata):
        raise BadQuery("Two keys of the metadata differ in control characters alone.")
    return checked


def write_values(exchanges: Iterable[Exchange]) -> None:
    """Write, or write again, the rows by which filters find the metadata of these exchanges."""
    given = list(exchanges)
    MetadataValue.objects.filter(exchange_id__in=[exchange.pk for exchange in given]).delete()
    rows = (
        row for exchange in given for key, value in exchange.metadata.items() for row in _rows(exchange, key, value)
    )
    MetadataValue.objects.bulk_create(rows, batch_size=1000)


def _rows(exchange: Exchange, key: str, value: Scalar | list[Scalar]) -> list[MetadataValue]:
    if isinstance(value, list):
        return [_row(exchange, key, member, is_member=True) for member in value]
    return [_row(exchange, key, value, is_member=False)]


def _row(exchange: Exchange, key: str, value: Scalar, *, is_member: bool) -> MetadataValue:
    # True is an int to Python.
    if isinstance(value, bool):
        return MetadataValue(exchange=exchange, key=key, is_member=is_member, truth=value)
    if isinstance(value, str):
        return MetadataValue(exchange=exchange, key=key, is_member=is_member, text=value)
    return MetadataValue(exchange=exchange, key=key, is_member=is_member, number=float(value))


def _key(key: object) -> str:
    cleaned = clean_text(key) if isinstance(key, str) else ""
    if not 1 <= len(cleaned) <= LONGEST_KEY or cleaned.startswith("$"):
        raise BadQuery(f"A metadata key is a text of 1 to {LONGEST_KEY} characters that does not begin with $.")
    return cleaned


def _value(key: str, value: object) -> Scalar | list[Scalar]:
    if not isinstance(value, list | tuple):
        return _scalar(key, value)
    if len(value) > MOST_MEMBERS:
        raise BadQuery(f"A list in metadata has at most {MOST_MEMBERS} members, {key} has {len(value)}.")
    members = [_scalar(key, member) for member in value]
    if len({_type_of(member) for member in members}) > 1:
        raise BadQuery(f"The members of the list {key} must all be texts, all numbers, or all true or false.")
    return members


def _scalar(key: str, value: object) -> Scalar:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = clean_text(value)
        if len(text) > LONGEST_TEXT:
            raise BadQuery(f"A text in metadata has at most {LONGEST_TEXT} characters, {key} has {len(text)}.")
        return text
    if isinstance(value, int | float):
        if not _is_finite(value):
            raise BadQuery(f"A number in metadata must be finite, {key} is not.")
        return value
    raise BadQuery(
        f"Metadata holds texts, numbers, true and false, and lists of one of these; {key} is something else."
    )


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond floating point
        return False


def _type_of(value: Scalar) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)
