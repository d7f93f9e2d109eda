"""The syntax tree of filters. It has no "not": the parser moves negation down to the conditions."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

MAX_KEY_LENGTH = 100

Scalar = str | int | float | bool
Value = str | float | bool | uuid.UUID | datetime
Operator = Literal["$in", "$contains", "$gt", "$gte", "$lt", "$lte"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison of an exchange's own field or of its metadata under `key`.

    All `values` have one type; only `$in` takes several. Equality is `$in` with one value. A missing value or one of
    another type fails the comparison, so a negated condition is true.
    """

    key: str
    is_own: bool
    operator: Operator
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Phrase:
    """True if the message or the answer contains this text as whole words, in upper or lower case."""

    text: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And:
    """True if all parts are true; always true without parts."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True if at least one part is true; never true without parts."""

    parts: tuple[Filter, ...]


Filter = Condition | Phrase | And | Or


def all_of(*filters: Filter | None) -> Filter | None:
    """Return a filter that requires all of these; None stands for no filter."""
    parts = tuple(part for part in filters if part is not None)
    return And(parts) if len(parts) > 1 else next(iter(parts), None)


def without_phrases(tree: Filter) -> Filter | None:
    """Return a filter that all matches of `tree` pass: it does not require the phrases. None if nothing else is left."""
    if isinstance(tree, Phrase):
        return None
    return all_of(*map(without_phrases, tree.parts)) if isinstance(tree, And) else tree


def conditions(tree: Filter) -> list[Condition]:
    """Return all comparisons of the tree, in order."""
    if isinstance(tree, Condition | Phrase):
        return [tree] if isinstance(tree, Condition) else []
    return [condition for part in tree.parts for condition in conditions(part)]
