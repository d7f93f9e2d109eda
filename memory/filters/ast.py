"""The syntax tree of filters. There is no "not" in it: the parser moves negation down to the conditions."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

LONGEST_KEY = 100

Scalar = str | int | float | bool
Value = str | float | bool | uuid.UUID | datetime
Operator = Literal["$in", "$contains", "$gt", "$gte", "$lt", "$lte"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison: of an exchange's own field, or of the free metadata under `key`.

    `values` are of one type, several for `$in` alone; equality is `$in` with one. Types never mix, so a value of
    another type, like one that is not there, fails the comparison; `negated` then holds.
    """

    key: str
    is_own: bool
    operator: Operator
    values: tuple[Value, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class And:
    """All of them; none: always true."""

    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one of them; none: never true."""

    parts: tuple[Filter, ...]


Filter = Condition | And | Or


def conditions(tree: Filter) -> list[Condition]:
    """Every condition of the tree, in its order."""
    if isinstance(tree, Condition):
        return [tree]
    return [condition for part in tree.parts for condition in conditions(part)]
