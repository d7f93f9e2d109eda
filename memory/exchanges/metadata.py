"""Validate metadata and store it in the rows that filters query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from django.utils.translation import gettext as _

from memory.errors import InvalidInputError
from memory.filters import MAX_KEY_LENGTH, Scalar
from memory.models import Exchange, MetadataValue
from memory.text import clean_text

MAX_KEYS = 100
MAX_MEMBERS = 200
MAX_TEXT_LENGTH = 500

Checked = dict[str, Scalar | list[Scalar]]


def validate_metadata(metadata: Mapping[str, object]) -> Checked:
    """Return the metadata with cleaned texts: scalars, and lists of scalars of one type."""
    if not isinstance(metadata, Mapping):
        raise InvalidInputError(_("Metadata is a mapping from keys to values."))
    if len(metadata) > MAX_KEYS:
        sentence = _("Metadata has at most %(most)s keys, not %(count)s.")
        raise InvalidInputError(sentence % {"most": MAX_KEYS, "count": len(metadata)})
    checked = {_validate_key(key): _validate_value(key, value) for key, value in metadata.items()}
    if len(checked) != len(metadata):
        raise InvalidInputError(_("Two keys of the metadata differ in control characters alone."))
    return checked


def save_metadata_values(exchanges: Iterable[Exchange]) -> None:
    """Replace the metadata rows of these exchanges, which filters query."""
    exchanges = list(exchanges)
    MetadataValue.objects.filter(exchange_id__in=[exchange.pk for exchange in exchanges]).delete()
    add_metadata_values(exchanges)


def add_metadata_values(exchanges: Iterable[Exchange]) -> None:
    """Add the metadata rows of new exchanges."""
    rows = (
        _build_row(exchange, key, scalar, is_member=isinstance(value, list))
        for exchange in exchanges
        for key, value in exchange.metadata.items()
        for scalar in (value if isinstance(value, list) else [value])
    )
    MetadataValue.objects.bulk_create(rows, batch_size=1000)


def _build_row(exchange: Exchange, key: str, value: Scalar, *, is_member: bool) -> MetadataValue:
    # In Python, bool is a subclass of int.
    if isinstance(value, bool):
        return MetadataValue(exchange=exchange, key=key, is_member=is_member, boolean=value)
    if isinstance(value, str):
        return MetadataValue(exchange=exchange, key=key, is_member=is_member, text=value)
    return MetadataValue(exchange=exchange, key=key, is_member=is_member, number=float(value))


def _validate_key(key: object) -> str:
    cleaned = clean_text(key) if isinstance(key, str) else ""
    if not 1 <= len(cleaned) <= MAX_KEY_LENGTH or cleaned.startswith("$"):
        sentence = _("A metadata key is a text of 1 to %(most)s characters that does not begin with $.")
        raise InvalidInputError(sentence % {"most": MAX_KEY_LENGTH})
    return cleaned


def _validate_value(key: str, value: object) -> Scalar | list[Scalar]:
    if not isinstance(value, list | tuple):
        return _validate_scalar(key, value)
    if len(value) > MAX_MEMBERS:
        sentence = _("A list in metadata has at most %(most)s members, %(key)s has %(count)s.")
        raise InvalidInputError(sentence % {"most": MAX_MEMBERS, "key": key, "count": len(value)})
    members = [_validate_scalar(key, member) for member in value]
    if len({_type_of(member) for member in members}) > 1:
        sentence = _("The members of the list %(key)s must all be texts, all numbers, or all true or false.")
        raise InvalidInputError(sentence % {"key": key})
    return members


def _validate_scalar(key: str, value: object) -> Scalar:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        text = clean_text(value)
        if len(text) > MAX_TEXT_LENGTH:
            sentence = _("A text in metadata has at most %(most)s characters, %(key)s has %(count)s.")
            raise InvalidInputError(sentence % {"most": MAX_TEXT_LENGTH, "key": key, "count": len(text)})
        return text
    if isinstance(value, int | float):
        if not _is_finite(value):
            raise InvalidInputError(_("A number in metadata must be finite, %(key)s is not.") % {"key": key})
        return value
    sentence = _("Metadata holds texts, numbers, true and false, and lists of one of these; %(key)s is something else.")
    raise InvalidInputError(sentence % {"key": key})


def _is_finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int beyond floating point
        return False


def _type_of(value: Scalar) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)
