"""Filters on exchanges: one small tree, read from a mapping, said in SQL and, where it can be, to the index.

A filter narrows and never widens: what it becomes is a condition that callers add to those on spaces.
"""

from memory.filters.ast import LONGEST_KEY, And, Condition, Filter, Or, Scalar
from memory.filters.parser import parse
from memory.filters.to_chroma import chroma_fields, to_chroma
from memory.filters.to_sql import to_sql

__all__ = [
    "LONGEST_KEY",
    "And",
    "Condition",
    "Filter",
    "Or",
    "Scalar",
    "chroma_fields",
    "parse",
    "to_chroma",
    "to_sql",
]
