"""The tools with which a model searches memory while it answers: their descriptions, arguments and results."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import Field, ValidationError

from chat.llm.endpoint import policy_columns, policy_of
from chat.llm.tool_calls import ToolCall
from chat.models import Thread
from chat.search.arguments import Arguments, SearchFilterArguments, describe_error, resolve_filters
from chat.turns.digest_scope import DigestScope
from memory import api as memory
from memory.api import (
    DataPolicy,
    Filter,
    Hit,
    InvalidInputError,
    RecallFilter,
    SpaceIds,
    all_of,
    permitted_spaces,
    personal_among,
)

MAX_QUERY_CHARS = 300
_MAX_HITS = 8
_MAX_DOCUMENTS = 50


class SearchArguments(SearchFilterArguments):
    """Search the team's memory (earlier conversations, notes and documents) by meaning.

    Use it if the passages recalled so far do not answer the question, with other words than before.
    """

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS, description="What to look for, in a few words.")
    limit: int = Field(5, ge=1, le=_MAX_HITS, description="The maximum number of results.")


class ReadMoreArguments(Arguments):
    """Read what stands around a passage: the messages before and after it, or the next part of its document."""

    passage: int = Field(ge=1, description="The number of the passage.")


class ListDocumentsArguments(Arguments):
    """List the documents in the team's memory, newest first."""

    name: str = Field("", max_length=200, description="Only documents whose name contains this.")


@dataclass(frozen=True, slots=True)
class ToolScope:
    """The limits of the tools: the spaces that all readers of the thread may read and the endpoint may receive, and filters.

    The model's queries are text of `thread_space`.
    """

    spaces: SpaceIds
    person_id: uuid.UUID
    thread_space: uuid.UUID
    filters: Filter | None = None
    exclude: frozenset[uuid.UUID] = field(default=frozenset())
    # The exchange of each passage quoted so far, by number.
    passages: Mapping[int, uuid.UUID] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolFindings:
    """The result of a call: hits to quote, or a `text`. `error` is for the model, which can correct its arguments."""

    hits: tuple[Hit, ...] = ()
    text: str = ""
    error: str = ""


def read_scope(
    thread_id: uuid.UUID,
    person_id: uuid.UUID,
    *,
    endpoint_name: str,
    digest_scope: dict[str, Any] | None,
    exclude: frozenset[uuid.UUID],
    passages: Mapping[int, uuid.UUID],
) -> ToolScope:
    """Return the scope of this thread as it is now: it, or the policy of the endpoint, can have changed since the start.

    `digest_scope` is that of the turn; `exclude` are the exchanges that are in the prompt as the thread's history.
    """
    rows: Any = Thread.objects.select_related("space").annotate(**policy_columns(endpoint_name))
    thread = rows.get(id=thread_id)
    return ToolScope(
        spaces=sendable_spaces(thread, policy_of(thread), digest_scope),
        person_id=person_id,
        thread_space=thread.space_id,
        filters=RecallFilter.from_json(thread.recall_filter).filter(),
        exclude=exclude,
        passages=passages,
    )


def sendable_spaces(thread: Thread, policy: DataPolicy, digest_scope: dict[str, Any] | None) -> SpaceIds:
    """Return the spaces that all readers of the thread may read and an endpoint with this policy may receive.

    With the scope of a digest, only those of which it tells.
    """
    audience = memory.audience_space_ids(thread.space)
    if digest_scope is not None:
        audience = DigestScope.from_json(digest_scope).limit(audience)
    return permitted_spaces(policy, audience, personal=personal_among([thread.space]))


def call_label(call: ToolCall) -> str:
    """Return what a call is about, for people: the query, the number of a passage, or a part of a document's name."""
    try:
        arguments = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return ""
    if not isinstance(arguments, dict):
        return ""
    value = arguments.get(
        {"search_memory": "query", "read_more": "passage", "list_documents": "name"}.get(call.name, "")
    )
    return memory.clean_text(str(value or ""))[:MAX_QUERY_CHARS]


def run_tool(call: ToolCall, scope: ToolScope) -> ToolFindings:
    """Carry out a call. Raises CatoError if memory cannot be searched; mistakes of the model are findings."""
    if call.name not in _TOOLS:
        return ToolFindings(error=f"There is no tool {call.name[:60]!r}; use {', '.join(_TOOLS)}.")
    arguments, run = _TOOLS[call.name]
    try:
        parsed = arguments.model_validate_json(call.arguments or "{}")
    except ValidationError as error:
        return ToolFindings(error=describe_error(error, arguments))
    return run(parsed, scope)


def _search(arguments: SearchArguments, scope: ToolScope) -> ToolFindings:
    try:
        spaces, condition = resolve_filters(arguments, scope.spaces)
    except InvalidInputError as error:
        return ToolFindings(error=str(error))
    results = memory.search(
        arguments.query,
        spaces=spaces,
        count=arguments.limit,
        filters=all_of(scope.filters, condition),
        exclude=scope.exclude,
        person_id=scope.person_id,
        limits_sources=True,
        text_space=scope.thread_space,
    )
    hits = [hit for hit in results.results if memory.is_relevant(hit, arguments.query)]
    # That a hit would not be recalled by itself says nothing to those who read why it was found.
    return ToolFindings(tuple(replace(hit, explanation="") if hit.is_below_gate else hit for hit in hits))


def _read_more(arguments: ReadMoreArguments, scope: ToolScope) -> ToolFindings:
    exchange_id = scope.passages.get(arguments.passage)
    if exchange_id is None:
        return ToolFindings(error=f"There is no passage {arguments.passage}.")
    try:
        near = memory.surroundings(exchange_id, spaces=scope.spaces, person_id=scope.person_id, filters=scope.filters)
    except memory.NotFoundError:
        return ToolFindings(error="This passage is no longer available.")
    return ToolFindings(tuple(near))


def _list_documents(arguments: ListDocumentsArguments, scope: ToolScope) -> ToolFindings:
    readable = memory.active_documents(scope.spaces, filters=scope.filters)
    documents = readable.filter(memory.contains("name", arguments.name)).order_by("-created_at")
    lines = [
        f"- {memory.neutralise_line(document.name)} ({document.created_at:%Y-%m-%d})"
        for document in documents[: _MAX_DOCUMENTS + 1]
    ]
    more = ["There are more; name a part of the document's name."] if len(lines) > _MAX_DOCUMENTS else []
    return ToolFindings(text="\n".join([*lines[:_MAX_DOCUMENTS], *more]) or "There are no such documents.")


_TOOLS: dict[str, tuple[type[Arguments], Callable[[Any, ToolScope], ToolFindings]]] = {
    "search_memory": (SearchArguments, _search),
    "read_more": (ReadMoreArguments, _read_more),
    "list_documents": (ListDocumentsArguments, _list_documents),
}


def _definition(name: str, arguments: type[Arguments]) -> dict[str, Any]:
    schema = arguments.model_json_schema()
    description = " ".join((arguments.__doc__ or "").split())
    parameters = {"type": "object", "properties": schema["properties"], "required": schema.get("required", [])}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


# In the form in which they are part of a request.
DEFINITIONS = [_definition(name, arguments) for name, (arguments, _run) in _TOOLS.items()]
