"""Filters on exchanges: parsed from a mapping to a tree, and translated to SQL and, where possible, to Chroma.

A filter only narrows results. Callers combine its condition with those on spaces.
"""

from memory.filters.ast import MAX_KEY_LENGTH, Filter, Phrase, Scalar, all_of, without_phrases
from memory.filters.parser import parse_filter
from memory.filters.to_chroma import chroma_fields, to_chroma
from memory.filters.to_sql import to_sql
