"""The own fields of exchanges that filters support: columns, names in the index, and value checks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from django.utils.translation import gettext as _

from memory.errors import InvalidInputError
from memory.filters.ast import Value
from memory.models import Exchange
from memory.text import clean_text


@dataclass(frozen=True, slots=True)
class ExchangeField:
    """A field: `column` in SQL, `stored` in Chroma's metadata, and its operators.

    `read` takes the field's name and a value, and returns the checked value. It raises InvalidInputError.
    """

    column: str
    stored: str
    read: Callable[[str, object], Value]
    operators: tuple[str, ...] = ("$in",)


def _source(name: str, value: object) -> str:
    if value not in Exchange.Source.values:
        sentence = _(
            "%(name)s is one of %(allowed)s, not %(value).80r. "
            "Metadata of the same name is asked for as metadata.%(name)s."
        )
        raise InvalidInputError(sentence % {"name": name, "allowed": ", ".join(Exchange.Source.values), "value": value})
    return str(value)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInputError(
            _("%(name)s is compared with a text, not with %(value).80r.") % {"name": name, "value": value}
        )
    return clean_text(value)


def _truth(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        sentence = _("%(name)s is compared with true or false, not with %(value).80r.")
        raise InvalidInputError(sentence % {"name": name, "value": value})
    return value


def _id(name: str, value: object) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    try:
        if isinstance(value, str):
            return uuid.UUID(value)
    except ValueError:
        pass  # the error is raised below, together with other types
    sentence = _("%(name)s is compared with an id (UUID), not with %(value).80r.")
    raise InvalidInputError(sentence % {"name": name, "value": value})


def _time(name: str, value: object) -> datetime:
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # the error is raised below, together with other types
    sentence = _("%(name)s is compared with a time such as 2026-03-01 or 2026-03-01T14:30:00Z, not with %(value).80r.")
    raise InvalidInputError(sentence % {"name": name, "value": value})


EXCHANGE_FIELDS: dict[str, ExchangeField] = {
    "source": ExchangeField("source", "source", _source),
    "said": ExchangeField("timestamp", "said", _time, ("$in", "$gt", "$gte", "$lt", "$lte")),
    "said_by": ExchangeField("owner_id", "owner", _id),
    "thread": ExchangeField("thread_id", "thread", _id),
    "session": ExchangeField("session_id", "session", _id),
    "space": ExchangeField("space_id", "space", _id),
    "source_file": ExchangeField("source_file", "source_file", _text),
    "manual_entry": ExchangeField("manual_entry", "manual_entry", _truth),
}
