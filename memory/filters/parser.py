"""Parse the mapping that people and programs write into a filter tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from django.utils.translation import gettext as _

from memory.errors import InvalidInputError
from memory.filters.ast import MAX_KEY_LENGTH, And, Condition, Filter, Operator, Or, Value, conditions
from memory.filters.fields import EXCHANGE_FIELDS
from memory.text import clean_text

MAX_DEPTH = 8
MAX_CONDITIONS = 100
MAX_MEMBERS = 1000
# Chroma's database uses two variables per number and allows 32,766 in all.
MAX_VALUES = 10_000

_PREFIX = "metadata."
_OPERATORS: tuple[Operator, ...] = get_args(Operator)
_RANGES = ("$gt", "$gte", "$lt", "$lte")


def parse_filter(data: Mapping[str, object]) -> Filter:
    """Return the tree of a filter such as `{"zone": "DMZ", "version": {"$gte": 3}, "$not": {"said_by": "…"}}`.

    All entries of a mapping must hold. A key is an own field of exchanges or a metadata key. `metadata.<key>` names
    metadata with the name of an own field. A value is compared for equality, or is a mapping of operators. Raises
    InvalidInputError.
    """
    tree = _parse_mapping(data, 1, False)
    all_conditions = conditions(tree)
    if len(all_conditions) > MAX_CONDITIONS:
        sentence = _("A filter has at most %(most)s conditions, this one %(count)s.")
        raise InvalidInputError(sentence % {"most": MAX_CONDITIONS, "count": len(all_conditions)})
    values = sum(len(condition.values) for condition in all_conditions)
    if values > MAX_VALUES:
        sentence = _("A filter names at most %(most)s values in all, this one %(count)s.")
        raise InvalidInputError(sentence % {"most": MAX_VALUES, "count": values})
    return tree


def _parse_mapping(data: object, depth: int, negated: bool) -> Filter:
    if depth > MAX_DEPTH:
        raise InvalidInputError(_("A filter is at most %(most)s levels deep.") % {"most": MAX_DEPTH})
    if not isinstance(data, Mapping) or not data:
        raise InvalidInputError(_('A filter is a mapping with at least one condition, such as {"zone": "DMZ"}.'))
    return _all([_parse_entry(name, value, depth, negated) for name, value in data.items()], negated)


def _parse_entry(name: object, value: object, depth: int, negated: bool) -> Filter:
    if name == "$not":
        return _parse_mapping(value, depth + 1, not negated)
    if name == "$and" or name == "$or":
        if not isinstance(value, list | tuple) or not value:
            raise InvalidInputError(_("%(name)s takes a list of filters, at least one.") % {"name": name})
        parts = [_parse_mapping(part, depth + 1, negated) for part in value]
        return _all(parts, negated) if name == "$and" else _any(parts, negated)
    if not isinstance(name, str) or name.startswith("$"):
        sentence = _("%(name).80r is neither the name of a field nor $and, $or or $not.")
        raise InvalidInputError(sentence % {"name": name})
    return _parse_field(name, value, negated)


def _parse_field(name: str, value: object, negated: bool) -> Filter:
    is_own = name in EXCHANGE_FIELDS
    key = clean_text(name if is_own else name.removeprefix(_PREFIX))
    if not 1 <= len(key) <= MAX_KEY_LENGTH or key.startswith("$"):
        sentence = _("A metadata key is a text of 1 to %(most)s characters that does not begin with $.")
        raise InvalidInputError(sentence % {"most": MAX_KEY_LENGTH})
    if not isinstance(value, Mapping):
        return _equals(key, is_own, [value], negated)
    if not value:
        sentence = _("%(name)s has no condition; use %(operators)s.")
        raise InvalidInputError(sentence % {"name": name, "operators": ", ".join(_allowed_operators(key, is_own))})
    return _all(
        [_parse_comparison(key, is_own, operator, operand, negated) for operator, operand in value.items()], negated
    )


def _parse_comparison(key: str, is_own: bool, operator: object, operand: object, negated: bool) -> Filter:
    allowed = _allowed_operators(key, is_own)
    supported = next((name for name in allowed if name == operator), None)
    if supported is None:
        sentence = _("%(name)s cannot be compared with %(operator).80r; use equality or %(operators)s.")
        raise InvalidInputError(sentence % {"name": key, "operator": operator, "operators": ", ".join(allowed)})
    if supported == "$in":
        if not isinstance(operand, list | tuple):
            raise InvalidInputError(_("$in takes a list of values, %(name)s was given something else.") % {"name": key})
        if len(operand) > MAX_MEMBERS:
            sentence = _("$in takes at most %(most)s values, %(name)s was given %(count)s.")
            raise InvalidInputError(sentence % {"most": MAX_MEMBERS, "name": key, "count": len(operand)})
        return _equals(key, is_own, operand, negated)
    value = _parse_value(key, is_own, operand)
    if supported in _RANGES and not is_own and not isinstance(value, float):
        sentence = _("%(operator)s compares numbers; %(name)s was given %(value).80r.")
        raise InvalidInputError(sentence % {"operator": supported, "name": key, "value": operand})
    return Condition(key, is_own, supported, (value,), negated)


def _equals(key: str, is_own: bool, operands: Sequence[object], negated: bool) -> Filter:
    """Return one condition per type among the values, because a row or field has one type."""
    by_type: dict[type, list[Value]] = {}
    for operand in operands:
        value = _parse_value(key, is_own, operand)
        by_type.setdefault(type(value), []).append(value)
    parts = [Condition(key, is_own, "$in", tuple(values), negated) for values in by_type.values()]
    return _any(parts, negated)


def _parse_value(key: str, is_own: bool, value: object) -> Value:
    if is_own:
        return EXCHANGE_FIELDS[key].read(key, value)
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    sentence = _("%(name)s is compared with texts, finite numbers, true or false, not with %(value).80r.")
    raise InvalidInputError(sentence % {"name": key, "value": value})


def _allowed_operators(key: str, is_own: bool) -> tuple[Operator, ...]:
    return tuple(name for name in _OPERATORS if not is_own or name in EXCHANGE_FIELDS[key].operators)


def _all(parts: Sequence[Filter], negated: bool) -> Filter:
    return _combine(parts, Or if negated else And)


def _any(parts: Sequence[Filter], negated: bool) -> Filter:
    return _combine(parts, And if negated else Or)


def _combine(parts: Sequence[Filter], kind: Callable[[tuple[Filter, ...]], Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))
