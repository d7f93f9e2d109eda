"""Arguments of searches that a model requests, Cato's own or an assistant's: checked, and turned into spaces and a filter."""

from __future__ import annotations

import uuid
from datetime import date
from typing import Any, Literal

from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from chat.search.filters import SOURCES_OF_TYPES
from chat.search.operators import resolve_choice, said_between
from memory import api as memory
from memory.api import Exchange, Filter, InvalidInputError, SpaceIds, clean_text, parse_filter

# By the type of pydantic's error; the context of the error fills the placeholders.
_MESSAGES = {
    "missing": "is missing",
    "less_than_equal": "must be at most {le}",
    "greater_than_equal": "must be at least {ge}",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "literal_error": "must be one of {expected}",
}
_MESSAGES_BY_BEGINNING = {
    "int": "must be a whole number",
    "date": "must be a day such as 2026-06-14",
    "uuid": "must be an id, as other results have it",
    "json": "must be valid JSON",
}


class Arguments(BaseModel):
    """The arguments of a tool; others are refused, so that a model notices that they have no effect."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _clean(cls, value: object) -> object:
        return clean_text(value) if isinstance(value, str) else value


class SearchFilterArguments(Arguments):
    """The filters of a search."""

    space: str = Field("", max_length=200, description="Only in the space of this name.")
    person: str = Field("", max_length=200, description="Only what this person said or added.")
    since: date | None = Field(None, description="Only from this day on (YYYY-MM-DD).")
    until: date | None = Field(None, description="Only up to this day (YYYY-MM-DD).")
    kind: Literal["said", "noted", "documents", ""] = Field("", description="Only conversations, notes, or documents.")


def describe_error(error: ValidationError, arguments: type[BaseModel]) -> str:
    """Return the first error of a call's arguments as a sentence with which a model can correct them."""
    first = error.errors(include_url=False, include_input=False)[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"There is no argument {name[:60]}; use {', '.join(arguments.model_fields) or 'none'}."
    beginnings = (text for begin, text in _MESSAGES_BY_BEGINNING.items() if first["type"].startswith(begin))
    message = _MESSAGES.get(first["type"]) or next(beginnings, "is not valid")
    subject = f"The argument {name}" if name else "The arguments"
    return f"{subject} {message.format(**first.get('ctx', {}))}."


def resolve_filters(arguments: SearchFilterArguments, spaces: SpaceIds) -> tuple[SpaceIds, Filter | None]:
    """Return the spaces among `spaces` to search, and the condition on exchanges.

    Raises InvalidInputError if a name matches nothing, or several things, of what is in `spaces`.
    """
    conditions: dict[str, object] = {}
    if arguments.space:
        named = memory.Space.objects.filter(id__in=spaces)
        chosen = _resolve("space", arguments.space, [(space.pk, space.display_name) for space in named])
        spaces = spaces & {uuid.UUID(chosen)}
    if arguments.person:
        written = memory.in_spaces(Exchange.objects.findable().filter(owner=OuterRef("pk")), spaces)
        people = get_user_model().objects.filter(Exists(written)).values_list("pk", "name")
        conditions["said_by"] = _resolve("person", arguments.person, people)
    if arguments.kind:
        conditions["source"] = {"$in": SOURCES_OF_TYPES[arguments.kind]}
    if times := said_between(arguments.since, arguments.until):
        conditions["said"] = times
    return spaces, parse_filter(conditions) if conditions else None


def _resolve(operator: str, typed: str, choices: Any) -> str:
    chosen = resolve_choice(operator, typed, choices)
    if chosen.error:
        raise InvalidInputError(chosen.error)
    return chosen.value
