"""Conversion of rows of memory and chat into API schemas."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from cato_web.api import schemas, thread_schemas
from chat.instructions.applying import AppliedInstruction, applied_to
from chat.models import Thread, Turn
from chat.rendering.blocks import render_blocks
from chat.rendering.citations import cited_numbers
from chat.rows.sources import citations_of
from memory import api as memory
from memory.api import Document, DocumentStatus, Exchange, ExchangeView, Hit, RecalledPassage, VersionStatus


def serialize_exchanges(rows: Sequence[Exchange]) -> list[schemas.Exchange]:
    """Serialize exchanges that were loaded with their owners."""
    states = memory.memory_states(row.pk for row in rows)
    return [_exchange(row, states.get(row.pk, "")) for row in rows]


def serialize_hits(results: Iterable[Hit]) -> list[schemas.SearchHit]:
    """Serialize search hits, with the statements among them."""
    hits = list(results)
    ids = [hit.exchange.id for hit in hits if hit.exchange.statement_state]
    statements = {row.id: row for row in serialize_statements(ids)} if ids else {}
    return [_hit(hit, statements.get(hit.exchange.id)) for hit in hits]


def serialize_statements(ids: Sequence[uuid.UUID]) -> list[schemas.Statement]:
    """Serialize readable statements with their sources, in this order."""
    rows = memory.load_statements(ids)
    sources, conflicts = memory.sources_of(rows), memory.conflicts_of(rows)
    return [
        schemas.Statement(
            id=row.pk,
            text=row.exchange.user_message,
            kind=memory.Statement.Kind(row.kind),
            topic=row.topic,
            state=memory.Statement.State(row.state),
            superseded_by=row.superseded_by_id,
            contradicts=[other.pk for other in conflicts[row.pk]],
            space_id=row.exchange.space_id,
            first_said_at=row.first_said_at,
            last_said_at=row.last_said_at,
            confirmed_by=str(row.confirmed_by) if row.confirmed_by else None,
            confirmed_at=row.confirmed_at,
            revision=row.revision,
            sources=[
                schemas.StatementSource(
                    exchange_id=source.exchange_id,
                    quote=source.quote,
                    who=str(source.exchange.owner),
                    said_at=source.exchange.timestamp,
                )
                for source in sources[row.pk]
            ],
        )
        for row in rows
    ]


def serialize_documents(states: Iterable[DocumentStatus], rows: Iterable[Document]) -> list[schemas.Document]:
    """Serialize documents: the status of each, and the metadata of its row."""
    by_id = {row.pk: row for row in rows}
    return [schemas.Document(**_document(state, by_id[state.id])) for state in states]


def serialize_document_detail(
    state: DocumentStatus, row: Document, versions: Iterable[VersionStatus]
) -> schemas.DocumentDetail:
    """Serialize a document with its versions."""
    details = [schemas.Version.model_validate(version) for version in versions]
    return schemas.DocumentDetail(**_document(state, row), versions=details)


def serialize_thread(thread: Any) -> thread_schemas.Thread:
    """Serialize a thread that was loaded with its owner and the user's marks."""
    return thread_schemas.Thread(**thread_fields(thread))


def thread_fields(thread: Any) -> dict[str, Any]:
    """Return the fields that a thread has in lists and in detail."""
    return {
        "id": thread.id,
        "title": thread.title,
        "space_id": thread.space_id,
        "owner_id": thread.owner_id,
        "who": str(thread.owner),
        "model": thread.model,
        "is_pinned": thread.pinned_at is not None,
        "is_archived": thread.archived_at is not None,
        "is_remembered": thread.is_remembered,
        "created_at": thread.created_at,
        "spoken_at": thread.last_message_at,
    }


def serialize_turns(thread: Thread, turns: Sequence[Turn]) -> list[thread_schemas.Turn]:
    """Serialize turns that were loaded with their authors.

    Their sources and instructions are limited to what all readers of the thread may read.
    """
    recalled = memory.recalled_for(
        (turn.id for turn in turns), spaces=memory.space_ids_shared_by_all_readers(thread.space_id)
    )
    states = memory.memory_states(turn.effective_exchange_id for turn in turns if turn.effective_exchange_id)
    instructions = applied_to(thread, turns)
    return [_turn(turn, recalled.get(turn.id, []), states, instructions) for turn in turns]


def receipt(exchanges: int, under_way: int) -> schemas.Receipt:
    """Return a receipt for exchanges that were just forgotten."""
    gone_by = timezone.now() + timedelta(hours=settings.CATO.vector_store.erase_within_hours)
    return schemas.Receipt(exchanges=exchanges, under_way=under_way, gone_by=gone_by)


def _exchange(row: Exchange, state: str) -> schemas.Exchange:
    exchange = _exchange_text(ExchangeView.from_row(row))
    own_fields = {
        name: getattr(row, name) for name in schemas.Exchange.model_fields if name not in (*exchange, "state")
    }
    return schemas.Exchange(**exchange, **own_fields, state=state)


def _hit(result: Hit, statement: schemas.Statement | None) -> schemas.SearchHit:
    location = result.exchange.location
    return schemas.SearchHit(
        **_exchange_text(result.exchange),
        place=schemas.LocationInfo.model_validate(location) if location else None,
        statement=statement,
        similarity=result.similarity,
        score=result.score,
        strategy=result.strategy,
        reason=result.explanation,
        is_below_gate=result.is_below_gate,
    )


def _exchange_text(exchange: ExchangeView) -> dict[str, Any]:
    """Return the text fields of an exchange."""
    return {"who": exchange.owner_name} | {
        name: getattr(exchange, name) for name in schemas.ExchangeText.model_fields if name != "who"
    }


def _document(state: DocumentStatus, row: Document) -> dict[str, Any]:
    return {
        "id": state.id,
        "name": state.name,
        "space_id": state.space_id,
        "owner_id": state.owner_id,
        "who": state.owner_name,
        "metadata": row.metadata,
        "created_at": state.created_at,
        "serving": state.live_version.number if state.live_version else None,
        "newest": schemas.Version.model_validate(state.newest),
    }


def _turn(
    turn: Turn,
    recalled: Sequence[RecalledPassage],
    states: Mapping[uuid.UUID, str],
    instructions: Mapping[str, AppliedInstruction],
) -> thread_schemas.Turn:
    cited = cited_numbers(render_blocks(turn.answer, citations_of(turn.id, recalled, {}))) if recalled else []
    error = schemas.ErrorBody(code=turn.error_code, message=turn.error) if turn.error else None
    return thread_schemas.Turn(
        id=turn.id,
        thread_id=turn.thread_id,
        position=turn.position,
        who=str(turn.author),
        message=turn.message,
        answer=turn.answer,
        state=turn.state,
        finish_reason=turn.finish_reason,
        error=error,
        model=turn.model,
        usage=turn.usage,
        is_dummy=turn.is_dummy,
        exchange_id=turn.exchange_id,
        memory=states.get(turn.effective_exchange_id, "") if turn.effective_exchange_id else "",
        created_at=turn.created_at,
        completed_at=turn.completed_at,
        sources=[_source(passage, passage.number in cited) for passage in recalled],
        instructions=[
            schemas.Instruction(id=row.id, space_id=row.space_id, text=row.text, created_at=row.created_at)
            for id in turn.applied_instructions
            if (row := instructions.get(id)) is not None
        ],
    )


def _source(passage: RecalledPassage, is_cited: bool) -> thread_schemas.Passage:
    exchange = passage.exchange
    return thread_schemas.Passage(
        number=passage.number,
        exchange_id=passage.exchange_id,
        exchange_ids=list(passage.exchange_ids),
        is_cited=is_cited,
        similarity=passage.similarity if exchange else None,
        score=passage.score,
        strategy=passage.strategy,
        reason=passage.explanation if exchange else "",
        is_forgotten=passage.is_forgotten,
        who=exchange.owner_name if exchange else "",
        timestamp=exchange.timestamp if exchange else None,
        user_message=passage.message,
        assistant_message=passage.answer,
        source_file=exchange.source_file if exchange else "",
    )
