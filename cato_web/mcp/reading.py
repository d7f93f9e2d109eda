"""The tools that read: search memory, read threads and documents, and list them and the spaces."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import asdict

from cato_web.api.paging import paginate
from cato_web.mcp import arguments
from cato_web.mcp.caller import UNTRUSTED_NOTE, Caller, parse_id
from cato_web.mcp.results import (
    DocumentEntry,
    DocumentResult,
    DocumentsResult,
    Found,
    KnowledgeEntry,
    KnowledgeResult,
    PassageResult,
    SearchResult,
    SpaceEntry,
    SpacesResult,
    StatementFacts,
    ThreadEntry,
    ThreadResult,
    ThreadsResult,
    TurnResult,
)
from chat import access
from chat.models import Turn
from chat.quick_search import contains_all_words
from chat.search.arguments import resolve_filters
from memory import api as memory
from memory.api import Hit, Space, StatementFilter, all_of

LEXICAL_FALLBACK_NOTE = "Vector search is unavailable: these results were found by words alone and may be incomplete."
_MAX_TEXT_LENGTH = 4000


def search_memory(caller: Caller, asked: arguments.SearchMemory) -> SearchResult:
    """Return the best results from all readable spaces, or from what the filters allow.

    Raises NotFoundError for the space and the document, InvalidInputError and VectorStoreDisabledError.
    """
    spaces, condition = resolve_filters(asked.model_copy(update={"space": ""}), caller.spaces(asked.space))
    if asked.document:
        document = memory.readable_document(spaces, parse_id(asked.document))
        in_document = memory.build_recall_filter([str(document.pk)], {}, spaces=spaces).filter()
        condition = all_of(condition, in_document)
    results = memory.search(asked.query, spaces=spaces, count=asked.k, filters=condition, reader_id=caller.person_id)
    names = Space.objects.in_bulk({hit.exchange.space_id for hit in results.results})
    facts = memory.statement_facts([hit.exchange.id for hit in results.results if hit.exchange.statement_state])
    return SearchResult(
        note=f"{LEXICAL_FALLBACK_NOTE} {UNTRUSTED_NOTE}" if results.is_lexical_only else UNTRUSTED_NOTE,
        results=[_search_hit(hit, names[hit.exchange.space_id], facts.get(hit.exchange.id)) for hit in results.results],
    )


def get_thread(caller: Caller, asked: arguments.GetThread) -> ThreadResult:
    """Return the last turns of a thread, or those before a position, oldest first. Raises NotFoundError."""
    thread = access.get_thread(caller.person_id, parse_id(asked.thread_id))
    branch = thread.turns.active_branch()
    before = branch if asked.before is None else branch.filter(position__lt=asked.before)
    turns = list(before.select_related("author").reverse()[: asked.last + 1])
    has_earlier = len(turns) > asked.last
    turns = turns[: asked.last][::-1]
    forgotten = forgotten_turns(turns)
    return ThreadResult(
        note=UNTRUSTED_NOTE,
        thread_id=thread.id,
        title=thread.title,
        owner=str(thread.owner),
        space=thread.space.display_name,
        turns_in_all=branch.count(),
        earlier=turns[0].position if has_earlier else None,
        turns=[_turn_result(turn, is_forgotten=turn.id in forgotten) for turn in turns],
    )


def forgotten_turns(turns: Collection[Turn]) -> set[uuid.UUID]:
    """Return the ids of those turns whose exchange is forgotten, of which tools show no text."""
    exchanges = {turn.id: turn.effective_exchange_id for turn in turns if turn.effective_exchange_id}
    states = memory.memory_states(exchanges.values())
    return {turn_id for turn_id, exchange_id in exchanges.items() if states.get(exchange_id) == "forgotten"}


def read_document(caller: Caller, asked: arguments.ReadDocument) -> DocumentResult:
    """Return passages of a document's live version. Raises NotFoundError."""
    document = memory.readable_document(caller.spaces(), parse_id(asked.document_id))
    chunks = memory.list_chunks(document, since=asked.passage, count=asked.count + 1)
    version = document.live_version
    return DocumentResult(
        note=UNTRUSTED_NOTE,
        document_id=document.pk,
        name=document.name,
        owner=str(document.owner),
        space=document.space.display_name,
        passages_in_all=version.total_chunks if version else None,
        next=chunks[asked.count].index if len(chunks) > asked.count else None,
        passages=[
            PassageResult(
                passage=chunk.index, place=chunk.location, text=chunk.text or "", is_forgotten=chunk.text is None
            )
            for chunk in chunks[: asked.count]
        ],
    )


def list_spaces(caller: Caller, asked: arguments.ListSpaces) -> SpacesResult:
    """Return the readable spaces: the personal one, groups by name, then the team's."""
    spaces = memory.list_readable_spaces(caller.person_id)
    audiences = memory.audience_texts(spaces)
    entries = [
        SpaceEntry(
            name=space.display_name,
            kind="personal" if space.owner_id else space.kind,
            audience=audiences[space.pk],
        )
        for space in spaces
    ]
    return SpacesResult(spaces=entries)


def list_threads(caller: Caller, asked: arguments.ListThreads) -> ThreadsResult:
    """Return readable threads. Raises NotFoundError for the space, InvalidInputError for the cursor."""
    rows = access.readable_threads(caller.person_id).filter(space_id__in=list(caller.spaces(asked.space)))
    rows = contains_all_words(rows.select_related("owner", "space"), asked.title.split(), "title")
    page, after = paginate(rows, "last_message_at", asked.cursor or None, asked.limit)
    entries = [
        ThreadEntry(
            thread_id=thread.id,
            title=thread.title,
            owner=str(thread.owner),
            space=thread.space.display_name,
            last_message_at=thread.last_message_at,
        )
        for thread in page
    ]
    return ThreadsResult(note=UNTRUSTED_NOTE, threads=entries, next=after)


def list_documents(caller: Caller, asked: arguments.ListDocuments) -> DocumentsResult:
    """Return readable documents. Raises NotFoundError for the space, InvalidInputError for the cursor."""
    rows = contains_all_words(memory.active_documents(caller.spaces(asked.space)), [asked.name], "name")
    page, after = paginate(rows.select_related("owner", "space"), "created_at", asked.cursor or None, asked.limit)
    entries = [
        DocumentEntry(
            document_id=document.pk,
            name=document.name,
            owner=str(document.owner),
            space=document.space.display_name,
            added_at=document.created_at,
            is_readable=document.live_version_id is not None,
        )
        for document in page
    ]
    return DocumentsResult(note=UNTRUSTED_NOTE, documents=entries, next=after)


def list_knowledge(caller: Caller, asked: arguments.ListKnowledge) -> KnowledgeResult:
    """Return readable statements. Raises NotFoundError for the space."""
    ids = memory.statement_ids(caller.spaces(asked.space), StatementFilter(text=asked.words, order="newest"))
    rows = memory.load_statements(ids[asked.offset : asked.offset + asked.limit])
    facts = memory.statement_facts([row.pk for row in rows])
    entries = [
        KnowledgeEntry(
            **asdict(facts[row.pk]),
            exchange_id=row.pk,
            statement=row.exchange.user_message,
            space=row.exchange.space.display_name,
        )
        for row in rows
        # A statement can be forgotten between the two queries.
        if row.pk in facts
    ]
    return KnowledgeResult(note=UNTRUSTED_NOTE, statements=entries, total=len(ids))


def _search_hit(hit: Hit, space: Space, statement: memory.StatementFacts | None) -> Found:
    exchange = hit.exchange
    location = exchange.location
    return Found(
        exchange_id=exchange.id,
        said_at=exchange.timestamp,
        who=exchange.owner_name,
        source=exchange.source_file or exchange.source,
        statement=StatementFacts(**asdict(statement)) if statement else None,
        place=location.label if location else "",
        space=space.display_name,
        thread_id=exchange.thread_id,
        document_id=location.document_id if location else None,
        passage=location.index if location else None,
        similarity=hit.similarity,
        is_relevant=not hit.is_below_gate,
        message=exchange.user_message[:_MAX_TEXT_LENGTH],
        answer=exchange.assistant_message[:_MAX_TEXT_LENGTH],
    )


def _turn_result(turn: Turn, *, is_forgotten: bool) -> TurnResult:
    return TurnResult(
        said_at=turn.created_at,
        who=str(turn.author),
        message="" if is_forgotten else turn.message,
        answer="" if is_forgotten else turn.answer,
        is_forgotten=is_forgotten,
    )
