"""The recall panel of one person: rendered passages, their feedback, and what they may do."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe

from chat import access
from chat.models import Turn
from chat.rendering.blocks import render_blocks
from chat.rendering.citations import Citations, item_dom_id, numbers_in_text
from chat.rows.knowledge import StatementRow, statement_rows
from chat.rows.recall import MAX_TEXT, RecallItemRow, recalled_rows, thread_titles_of_recalled
from chat.rows.sources import citations_of
from memory import api as memory
from memory.api import Exchange, RecalledPassage, feedback_for_exchanges


def personal_rows(turn: Turn, person_id: uuid.UUID, *, is_administrator: bool) -> list[RecallItemRow]:
    """Return the rows of this turn's recall panel for one person, with feedback and links to forget."""
    recalled = memory.recalled_for([turn.id], spaces=memory.space_ids_shared_by_all_readers(turn.thread.space_id))
    titles = thread_titles_of_recalled(recalled)
    passages = recalled.get(turn.id, [])
    exchanges = Exchange.objects.in_bulk({exchange.id for passage in passages for exchange in passage.exchanges})
    feedback = feedback_for_exchanges(person_id, exchanges, spaces=memory.readable_space_ids(person_id))
    rows = recalled_rows(passages, titles)
    citations = citations_of(turn.id, passages, titles)
    cited = numbers_in_text(turn.answer)
    decisions = memory.decisions_of(person_id, exchanges) if any(row.subject for row in rows) else {}
    statements = _statement_rows(exchanges.values(), person_id, is_administrator=is_administrator)
    superseding = {later for (later, _earlier), is_confirmed in decisions.items() if is_confirmed}

    def add_actions(row: RecallItemRow, passage: RecalledPassage) -> RecallItemRow:
        # Those that are readable, that of the best hit first.
        parts = [exchanges[id] for id in passage.exchange_ids if id in exchanges]
        if not parts:
            return row
        exchange, *others = parts
        dom_id = item_dom_id(turn.id, row.exchange_id)
        also = {"also": [other.id for other in others]}
        query = {"at": dom_id, "next": reverse("recalled_exchanges", args=[turn.id], fragment=dom_id)} | also
        later_id = passage.later_id if row.subject and row.subject.later_number else None
        is_confirmed = decisions.get((later_id, exchange.id)) if later_id else exchange.id in superseding or None
        can_forget = all(access.can_forget(person_id, part, is_administrator=is_administrator) for part in parts)
        return replace(
            row,
            rendered=_render(passage),
            feedback=feedback[exchange.id],
            dom_id=dom_id,
            feedback_url=reverse("feedback", args=[exchange.id], query=query),
            forget_url=reverse("forget_exchange", args=[exchange.id], query=also) if can_forget else "",
            statement=statements.get(exchange.id),
            statement_url=reverse("recalled_statement", args=[exchange.id], query={"at": dom_id}),
            uses_url=reverse("exchange_uses", args=[exchange.id], query=also),
            decision={None: "", True: "confirmed", False: "rejected"}[is_confirmed],
            citation=_citation(citations, row, is_superseded=bool(is_confirmed))
            if later_id and row.number in cited
            else SafeString(),
            supersession_url=reverse("supersession", args=[exchange.id, later_id], query=query) if later_id else "",
        )

    return list(map(add_actions, rows, passages))


def _statement_rows(
    exchanges: Iterable[Exchange], person_id: uuid.UUID, *, is_administrator: bool
) -> dict[uuid.UUID, StatementRow]:
    ids = [exchange.id for exchange in exchanges if exchange.source == Exchange.Source.KNOWLEDGE]
    if not ids:
        return {}
    rows = statement_rows(memory.load_statements(ids), person_id, is_administrator=is_administrator)
    return {row.id: row for row in rows}


def _citation(citations: Citations, row: RecallItemRow, *, is_superseded: bool) -> SafeString:
    """Return the link that replaces the citations of an earlier message on the page of one person."""
    link = citations.link(row.number, row.subject.later_at if is_superseded and row.subject else None)
    target = item_dom_id(citations.turn_id, row.exchange_id)
    return mark_safe(link.replace("<a ", f"<a hx-swap-oob=\"outerHTML:a.citation[href='#{target}']\" ", 1))


def _render(passage: RecalledPassage) -> SafeString:
    """Return the text of a readable passage as HTML, as answers are rendered, without citations."""
    answer = passage.exchange.assistant_message if passage.exchange else ""
    text = "\n\n".join(filter(None, (passage.message, answer)))
    return mark_safe("".join(render_blocks(text[:MAX_TEXT])))
