"""Write the terms of exchanges, in the transaction that writes the exchanges."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.db.models import prefetch_related_objects

from memory.lexical.analyser import analyse, date_terms
from memory.models import Exchange, LexicalEntry


def index_terms(exchanges: Iterable[Exchange]) -> None:
    """Write or replace the terms of these exchanges: date, author, file name and both texts."""
    save_entries(build_entries(exchanges))


def build_entries(exchanges: Iterable[Exchange]) -> list[LexicalEntry]:
    """Build the term rows of these exchanges without saving them.

    Analysing takes longer than writing, so callers can do it outside the transaction.
    """
    exchanges = list(exchanges)
    prefetch_related_objects(exchanges, "owner")
    return [_build_entry(exchange) for exchange in exchanges]


def save_entries(rows: list[LexicalEntry]) -> None:
    """Insert or update the given term rows."""
    LexicalEntry.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["exchange"], update_fields=["space", "terms", "length"]
    )


def delete_entries(exchange_ids: Iterable[uuid.UUID]) -> None:
    """Delete the terms of these exchanges."""
    LexicalEntry.objects.filter(exchange_id__in=list(exchange_ids)).delete()


def _build_entry(exchange: Exchange) -> LexicalEntry:
    texts = (f"{exchange.owner} {exchange.source_file}", exchange.user_message, exchange.assistant_message)
    terms = date_terms(exchange.timestamp) + [term for text in texts for term in analyse(text)]
    return LexicalEntry(exchange=exchange, space_id=exchange.space_id, terms=" ".join(terms), length=len(terms))
