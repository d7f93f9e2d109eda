"""Operations: search, and recall for conversations outside Cato."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Annotated

from django.conf import settings
from ninja import Query, Router
from pydantic import Field

from cato_web.api import schemas, serializers, thread_schemas
from cato_web.api.auth import READ, ApiRequest, current_user, readable_spaces
from cato_web.api.errors import STORE, responses
from cato_web.api.fields import ConditionsText, SpaceName, Text, Time
from chat import access
from chat.quick_search import find_related
from memory import api as memory
from memory.api import Exchange, Filter, build_prompt_context, parse_filter

router = Router(tags=["memory"])
Similarity = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)]
# The HTTP parser accepts URLs of up to 65,535 bytes, and a character takes up to 12 bytes in one.
_MAX_QUERY_CHARS = 5000


@router.get("/search", auth=READ, response=responses(schemas.SearchResponse, *STORE))
def search(
    request: ApiRequest,
    q: Annotated[Text, Query(min_length=1, max_length=_MAX_QUERY_CHARS, description="The query.")],
    k: Annotated[int, Query(ge=1, le=100, description="How many at most.")] = 5,
    min_similarity: Annotated[Similarity | None, Query()] = None,
    source: Annotated[Exchange.Source | None, Query()] = None,
    space: Annotated[SpaceName | None, Query()] = None,
    thread: Annotated[uuid.UUID | None, Query()] = None,
    document: Annotated[uuid.UUID | None, Query()] = None,
    since: Annotated[Time | None, Query()] = None,
    until: Annotated[Time | None, Query()] = None,
    who: Annotated[uuid.UUID | None, Query(description="Id of the author.")] = None,
    filters: Annotated[ConditionsText | None, Query()] = None,
) -> schemas.SearchResponse:
    """Search by vectors and terms in all readable spaces, best first. Hits below the recall gate are marked."""
    query: dict[str, object] = {"source": source, "thread": thread, "metadata.document": document, "said_by": who}
    conditions = {name: str(value) for name, value in query.items() if value is not None}
    times = {name: at for name, at in (("$gte", since), ("$lt", until)) if at is not None}
    results = memory.search(
        q,
        spaces=readable_spaces(request, space),
        count=k,
        min_similarity=min_similarity,
        filters=_parse_conditions([conditions | ({"said": times} if times else {}), filters]),
        reader_id=current_user(request).pk,
    )
    return schemas.SearchResponse(hits=serializers.serialize_hits(results.results), note=results.note)


@router.post("/recall", auth=READ, response=responses(schemas.Recalled, *STORE))
def recall(request: ApiRequest, query: schemas.RecallRequest) -> schemas.Recalled:
    """Recall for a conversation: the hits that pass the gate within the token budget, also as prompt context."""
    memory.ensure_enabled()
    space_sets = (
        [readable_spaces(request, name) for name in query.spaces] if query.spaces else [readable_spaces(request)]
    )
    budget = query.max_tokens or settings.CATO.vector_store.context_max_tokens
    person_id = current_user(request).pk
    recalled = memory.recall(
        query.messages,
        spaces=frozenset().union(*space_sets),
        person_id=person_id,
        max_tokens=budget,
        reader_id=person_id,
    )
    return schemas.Recalled(
        results=serializers.serialize_hits(recalled.results),
        context=build_prompt_context(recalled.results, max_tokens=budget),
        note=recalled.note,
    )


@router.get("/context", auth=READ, response=responses(schemas.Context, *STORE))
def get_context(
    request: ApiRequest,
    text: Annotated[
        Text, Query(min_length=1, max_length=_MAX_QUERY_CHARS, description="The text that the context is for.")
    ],
    max_tokens: Annotated[int, Query(ge=1, le=100_000)] = 2000,
) -> schemas.Context:
    """Return prompt context for one text: relevant passages from all readable spaces, quoted and numbered."""
    memory.ensure_enabled()
    context = memory.get_relevant_context(
        text, spaces=readable_spaces(request), max_tokens=max_tokens, reader_id=current_user(request).pk
    )
    return schemas.Context(context=context)


@router.get("/threads/{uuid:thread_id}/search", auth=READ, response=responses(schemas.SearchResponse, *STORE))
def search_thread(
    request: ApiRequest,
    thread_id: uuid.UUID,
    q: Annotated[Text, Query(min_length=1, max_length=_MAX_QUERY_CHARS, description="The topic.")],
    session: Annotated[uuid.UUID | None, Query(description="Only this session of the thread.")] = None,
    k: Annotated[int, Query(ge=1, le=100, description="How many at most.")] = 20,
) -> schemas.SearchResponse:
    """Search one thread or session by topic, best first."""
    person_id = current_user(request).pk
    thread = access.get_thread(person_id, thread_id)
    results = memory.search_by_topic(
        q, spaces=readable_spaces(request), thread_id=thread.id, session_id=session, count=k, reader_id=person_id
    )
    return schemas.SearchResponse(hits=serializers.serialize_hits(results.results), note=results.note)


@router.get("/threads/{uuid:thread_id}/related", auth=READ, response=responses(thread_schemas.RelatedThreads, *STORE))
def related_threads(request: ApiRequest, thread_id: uuid.UUID) -> thread_schemas.RelatedThreads:
    """Return other threads on the subject of this thread's last messages, best first."""
    person_id = current_user(request).pk
    results = find_related(access.get_thread(person_id, thread_id), person_id)
    return thread_schemas.RelatedThreads(
        threads=[
            thread_schemas.RelatedThread(thread=serializers.serialize_thread(thread), score=score)
            for thread, score in results
        ]
    )


def _parse_conditions(conditions: Sequence[dict[str, object] | None]) -> Filter | None:
    """Return the filter that matches all of these conditions, of which None and the empty one are none."""
    given = [condition for condition in conditions if condition]
    return parse_filter({"$and": given}) if given else None
