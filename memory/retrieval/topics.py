"""Recall for other programs and pages: prompt context, search within a thread or session, and related threads."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from memory.errors import InvalidInputError
from memory.filters import parse_filter
from memory.models import Exchange
from memory.retrieval.prompt_context import build_prompt_context
from memory.retrieval.recall import recall
from memory.retrieval.search import SearchResults, rank, search
from memory.spaces.access import SpaceIds, in_spaces

# Number of a thread's last exchanges that describe its topic, and number of hits examined for related threads.
_TOPIC_MESSAGES = 3
_EXAMINED_HITS = 60


@dataclass(frozen=True, slots=True)
class RelatedThread:
    """A thread about a similar topic, with the best score of its exchanges."""

    thread_id: uuid.UUID
    score: float


def get_relevant_context(text: str, *, spaces: SpaceIds, max_tokens: int, reader_id: uuid.UUID | None = None) -> str:
    """Return the prompt context for `text` within `max_tokens`; "" if nothing is relevant. `reader_id` is that of `search`.

    Raises InvalidInputError if `max_tokens` is less than 1.
    """
    if max_tokens < 1:
        raise InvalidInputError(f"Ask for at least 1 token of context, not {max_tokens}.")
    recalled = recall([text], spaces=spaces, max_tokens=max_tokens, reader_id=reader_id)
    return build_prompt_context(recalled.results, max_tokens=max_tokens)


def search_by_topic(
    topic: str,
    *,
    spaces: SpaceIds,
    thread_id: uuid.UUID | None = None,
    session_id: uuid.UUID | None = None,
    count: int = 20,
    reader_id: uuid.UUID | None = None,
) -> SearchResults:
    """Search for `topic` within a thread, a session or both. `reader_id` is that of `search`.

    Raises InvalidInputError if neither is given, and the errors of `search`, such as VectorStoreDisabledError.
    """
    ids = {"thread": thread_id, "session": session_id}
    condition = {field: str(id) for field, id in ids.items() if id is not None}
    if not condition:
        raise InvalidInputError("Say in which thread or session to look.")
    return search(topic, spaces=spaces, count=count, filters=parse_filter(condition), reader_id=reader_id)


def related_threads(thread_id: uuid.UUID, *, spaces: SpaceIds, count: int = 5) -> list[RelatedThread]:
    """Return other threads in `spaces` about the topic of this thread's last exchanges, best first."""
    exchanges = in_spaces(Exchange.objects.findable().filter(thread_id=thread_id), spaces)
    texts = [row.user_message for row in exchanges.order_by("-timestamp", "id")[:_TOPIC_MESSAGES]]
    if not texts:
        return []
    other_threads = parse_filter({"$not": {"thread": str(thread_id)}})
    found = rank("\n".join(texts), spaces=spaces, limit=_EXAMINED_HITS, filters=other_threads).results
    best: dict[uuid.UUID, float] = {}
    for result in found:
        thread = result.exchange.thread_id
        if thread is not None and not result.is_below_gate:
            best[thread] = max(best.get(thread, result.score), result.score)
    ranked = sorted(best.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return [RelatedThread(thread, score) for thread, score in ranked[:count]]
