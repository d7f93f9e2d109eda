"""Statements among hits: instead of their sources, together with what contradicts them, and superseded ones on request."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from django.utils.translation import gettext as _

from memory.filters import to_sql
from memory.knowledge.listing import conflicts_of
from memory.models import Exchange, Statement, Support
from memory.retrieval.types import ExchangeView, Hit, Query


def with_statements(hits: Sequence[Hit], query: Query, *, asks_for_former: bool) -> list[Hit]:
    """Return the hits without superseded statements, unless the query asks for a former state.

    For a recall, a statement that passes the gate stands for its sources, and is followed by those that contradict it, as
    far as the query admits them. Without a statement among the hits, they are returned as they are, without a query.
    """
    if not any(_is_statement(hit) for hit in hits):
        return list(hits)
    kept = [hit for hit in hits if asks_for_former or hit.exchange.statement_state != Statement.State.SUPERSEDED]
    return _with_contradictions(_without_sources(kept), query) if query.limits_sources else kept


def _without_sources(hits: Sequence[Hit]) -> list[Hit]:
    """Put each relevant statement in the best place that it or one of its sources has, and drop these sources."""
    statements = {hit.exchange.id: hit for hit in hits if _is_statement(hit) and not hit.is_below_gate}
    pairs = Support.objects.filter(statement_id__in=statements).values_list("exchange_id", "statement_id")
    by_source = {source: statements[statement] for source, statement in pairs}
    ordered: dict[uuid.UUID, Hit] = {}
    for hit in hits:
        shown = by_source.get(hit.exchange.id, hit)
        ordered.setdefault(shown.exchange.id, shown)
    return list(ordered.values())


def _with_contradictions(hits: Sequence[Hit], query: Query) -> list[Hit]:
    """Put the statements that contradict a relevant one right after it."""
    conflicting = [hit for hit in hits if _is_conflicting(hit) and not hit.is_below_gate]
    if not conflicting:
        return list(hits)
    partners = _partners([hit.exchange.id for hit in conflicting], query)
    found = {hit.exchange.id: hit for hit in hits}
    ordered: dict[uuid.UUID, Hit] = {}
    for hit in hits:
        ordered.setdefault(hit.exchange.id, hit)
        if hit in conflicting:
            for partner in partners.get(hit.exchange.id, ()):
                other = found.get(partner.id) or replace(
                    hit, exchange=partner, similarity=None, ranks={}, related=frozenset()
                )
                explained = replace(other, is_below_gate=False, explanation=_("Contradicts the statement before it"))
                ordered.setdefault(partner.id, explained)
    return list(ordered.values())


def _partners(ids: Sequence[uuid.UUID], query: Query) -> dict[uuid.UUID, list[ExchangeView]]:
    """Return the findable statements that contradict these, in the same space, and that the query does not exclude."""
    statements = Statement.objects.filter(pk__in=ids)
    partners = conflicts_of(statements)
    partner_ids = {other.pk for others in partners.values() for other in others}
    rows = Exchange.objects.findable().filter(pk__in=partner_ids - query.exclude).select_related("owner", "statement")
    if query.filters is not None:
        rows = rows.filter(to_sql(query.filters))
    views = {row.pk: ExchangeView.from_row(row) for row in rows}
    return {id: [views[other.pk] for other in others if other.pk in views] for id, others in partners.items()}


def _is_statement(hit: Hit) -> bool:
    return hit.exchange.source == Exchange.Source.KNOWLEDGE


def _is_conflicting(hit: Hit) -> bool:
    return hit.exchange.statement_state == Statement.State.CONFLICTING
