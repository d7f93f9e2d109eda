"""Operations: searching memory, and recalling from it for a conversation held elsewhere."""

from __future__ import annotations

import uuid
from typing import Annotated

from django.conf import settings
from ninja import Query, Router
from pydantic import Field

from cato_web.api import schemas, serializers
from cato_web.api.responses import STORE, responses
from cato_web.api.auth import READ, ApiRequest, current_user, readable_spaces
from cato_web.api.fields import SpaceName, Text, Time
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
    q: Annotated[Text, Query(min_length=1, max_length=_MAX_QUERY_CHARS, description="What to look for.")],
    k: Annotated[int, Query(ge=1, le=100, description="How many at most.")] = 5,
    min_similarity: Annotated[Similarity | None, Query()] = None,
    source: Annotated[Exchange.Source | None, Query()] = None,
    space: Annotated[SpaceName | None, Query()] = None,
    thread: Annotated[uuid.UUID | None, Query()] = None,
    document: Annotated[uuid.UUID | None, Query()] = None,
    since: Annotated[Time | None, Query()] = None,
    until: Annotated[Time | None, Query()] = None,
    who: Annotated[uuid.UUID | None, Query(description="The id of who said it.")] = None,
) -> schemas.SearchResponse:
    """The nearest by meaning and by word of all this person may read, best first; what recall would leave out is marked."""
    asked: dict[str, object] = {"source": source, "thread": thread, "metadata.document": document, "said_by": who}
    conditions = {name: str(value) for name, value in asked.items() if value is not None}
    said = {name: at for name, at in (("$gte", since), ("$lt", until)) if at is not None}
    found = memory.search(
        q,
        spaces=readable_spaces(request, space),
        count=k,
        min_similarity=min_similarity,
        filters=_filter(conditions | ({"said": said} if said else {})),
    )
    return schemas.SearchResponse(hits=serializers.found(found.results), note=found.note)


@router.post("/recall", auth=READ, response=responses(schemas.Recalled, *STORE))
def recall(request: ApiRequest, asked: schemas.RecallRequest) -> schemas.Recalled:
    """What memory has for a conversation: what passes the gate within the budget, and the same as prompt material."""
    places = [readable_spaces(request, named) for named in asked.spaces] if asked.spaces else [readable_spaces(request)]
    budget = asked.max_tokens or settings.CATO.vector_store.context_max_tokens
    recollection = memory.recall(
        asked.messages, spaces=frozenset().union(*places), person_id=current_user(request).pk, max_tokens=budget
    )
    return schemas.Recalled(
        results=serializers.found(recollection.results),
        context=build_prompt_context(recollection.results, max_tokens=budget),
        note=recollection.note,
    )


@router.get("/context", auth=READ, response=responses(schemas.Context, *STORE))
def get_context(
    request: ApiRequest,
    text: Annotated[Text, Query(min_length=1, max_length=_MAX_QUERY_CHARS, description="What the context is for.")],
    max_tokens: Annotated[int, Query(ge=1, le=100_000)] = 2000,
) -> schemas.Context:
    """Ready prompt context for one text: what is relevant of all this person may read, quoted and numbered."""
    return schemas.Context(
        context=memory.get_relevant_context(text, spaces=readable_spaces(request), max_tokens=max_tokens)
    )


@router.get("/threads/{uuid:thread_id}/search", auth=READ, response=responses(schemas.SearchResponse, *STORE))
def search_thread(
    request: ApiRequest,
    thread_id: uuid.UUID,
    q: Annotated[Text, Query(min_length=1, max_length=_MAX_QUERY_CHARS, description="The topic.")],
    session: Annotated[uuid.UUID | None, Query(description="One session of the thread.")] = None,
    k: Annotated[int, Query(ge=1, le=100, description="How many at most.")] = 20,
) -> schemas.SearchResponse:
    """Return what was said about a topic in one thread or session, best first."""
    thread = access.get_thread(current_user(request).pk, thread_id)
    found = memory.search_by_topic(q, spaces=readable_spaces(request), thread_id=thread.id, session_id=session, count=k)
    return schemas.SearchResponse(hits=serializers.found(found.results), note=found.note)


@router.get("/threads/{uuid:thread_id}/related", auth=READ, response=responses(schemas.RelatedThreads, *STORE))
def related_threads(request: ApiRequest, thread_id: uuid.UUID) -> schemas.RelatedThreads:
    """Other threads about the same subject as the last messages of this one, best first."""
    person_id = current_user(request).pk
    found = find_related(access.get_thread(person_id, thread_id), person_id)
    return schemas.RelatedThreads(
        threads=[schemas.RelatedThread(thread=serializers.serialize_thread(thread), score=score) for thread, score in found]
    )


def _filter(conditions: dict[str, object]) -> Filter | None:
    return parse_filter(conditions) if conditions else None
