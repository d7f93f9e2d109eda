"""Translate filters to conditions on Exchange rows."""

from __future__ import annotations

import re
from functools import reduce
from operator import and_, or_

from django.db.models import CharField, Exists, OuterRef, Q
from django.db.models.functions import Cast

from memory.filters.ast import MAX_KEY_LENGTH, And, Condition, Filter, Phrase
from memory.filters.fields import EXCHANGE_FIELDS
from memory.lexical.analyser import separates_words
from memory.models import MetadataValue

# Column of MetadataValue for each type.
COLUMNS = {str: "text", float: "number", bool: "boolean"}
# Spaces that do not break a line are spaces to Python, and so to SQLite, but not to PostgreSQL.
_SPACES = "[\\s\u00a0\u2007\u202f]+"


def to_sql(tree: Filter) -> Q:
    """Return a Q for `Exchange.objects.filter`; callers add the conditions on readable spaces."""
    if isinstance(tree, Condition):
        holds = _field_condition(tree) if tree.is_own else _metadata_condition(tree)
        return ~holds if tree.negated else holds
    if isinstance(tree, Phrase):
        return ~_contains(tree.text) if tree.negated else _contains(tree.text)
    is_and = isinstance(tree, And)
    if not tree.parts:
        # Not Q(): combined by "or", an empty Q disappears instead of being always true.
        return ~Q(pk__in=[]) if is_and else Q(pk__in=[])
    return reduce(and_ if is_and else or_, map(to_sql, tree.parts))


def _contains(text: str) -> Q:
    """Return a Q for rows with these words, however they are spaced, as whole words where the script separates words."""
    # SQLite's LIKE ignores the case of ASCII letters only, so both databases compare by regular expression.
    before = r"(^|\W)" if separates_words(text[0]) else ""
    after = r"(\W|$)" if separates_words(text[-1]) else ""
    words = _SPACES.join(map(re.escape, text.split()))
    pattern = f"{before}{words}{after}"
    return Q(user_message__iregex=pattern) | Q(assistant_message__iregex=pattern)


def _field_condition(condition: Condition) -> Q:
    return Q(**lookup(EXCHANGE_FIELDS[condition.key].column, condition))


def _metadata_condition(condition: Condition) -> Q:
    column = COLUMNS[type(condition.values[0])]
    # The cast does not change the value. It keeps SQLite from scanning all rows of the key for every exchange. A few
    # hundred candidates of 100,000 took half a minute; through the exchange's own rows they take 10 ms.
    rows = MetadataValue.objects.alias(its_key=Cast("key", CharField(max_length=MAX_KEY_LENGTH)))
    is_member = condition.operator == "$contains"
    of_exchange = rows.filter(exchange=OuterRef("pk"), its_key=condition.key, is_member=is_member)
    return Q(Exists(of_exchange.filter(**lookup(column, condition))))


def lookup(column: str, condition: Condition) -> dict[str, object]:
    """Return the keyword arguments of `filter` for `condition` on `column`."""
    if condition.operator == "$in":
        return {f"{column}__in": condition.values}
    if condition.operator == "$contains":
        return {column: condition.values[0]}
    return {f"{column}__{condition.operator[1:]}": condition.values[0]}
