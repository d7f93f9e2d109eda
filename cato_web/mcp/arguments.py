"""The arguments of the tools. A docstring is the description of its tool, for the model that chooses it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from chat.search.arguments import Arguments, SearchFilterArguments
from memory.api import MAX_RESULTS

MAX_TURNS = 200
MAX_PASSAGES = 50
MAX_ENTRIES = 100

ReadSpace = Annotated[
    str,
    Field(
        max_length=200,
        description='Only in this space: a name from list_spaces, "own" or "team". Omit it for everything the user can read.',
    ),
]
Cursor = Annotated[str, Field(max_length=200, description="`next` of the previous result; omit it at first.")]
Limit = Annotated[int, Field(ge=1, le=MAX_ENTRIES, description="The maximum number of entries.")]


class SearchMemory(SearchFilterArguments):
    """Search conversations, notes and documents by meaning and by keywords.

    Searches everything that the user can read, or what the filters allow. Each result names its time, author, thread or
    document, and who can read it. Results that are not relevant are marked, not omitted.
    """

    query: str = Field(min_length=1, description="Keywords or a question.")
    k: int = Field(5, ge=1, le=MAX_RESULTS, description="The maximum number of results.")
    space: ReadSpace = ""
    document: str = Field(
        "", max_length=40, description="Only in this document: an id from list_documents or from a result."
    )


class GetThread(Arguments):
    """Read the last turns of a conversation, or those before them, oldest first, each with its author and time."""

    thread_id: str = Field(description="The id of a conversation, from search_memory or list_threads.")
    last: int = Field(50, ge=1, le=MAX_TURNS, description="The maximum number of turns.")
    before: int | None = Field(None, ge=0, description="`earlier` of the previous result, to read on backwards.")


class ReadDocument(Arguments):
    """Read passages of a document in order, from the beginning or from any passage, such as one that was found."""

    document_id: str = Field(description="The id of a document, from search_memory or list_documents.")
    passage: int = Field(0, ge=0, description="The number of the first passage to read; `next` of a result reads on.")
    count: int = Field(10, ge=1, le=MAX_PASSAGES, description="The maximum number of passages.")


class ListSpaces(Arguments):
    """List the spaces of memory that the user can read: the personal one, groups, and the team's."""


class ListThreads(Arguments):
    """List the conversations that the user can read, most recently active first."""

    title: str = Field("", max_length=200, description="Only those with all of these words in the title.")
    space: ReadSpace = ""
    limit: Limit = 20
    cursor: Cursor = ""


class ListDocuments(Arguments):
    """List the documents that the user can read, newest first."""

    name: str = Field("", max_length=200, description="Only those whose name contains this.")
    space: ReadSpace = ""
    limit: Limit = 20
    cursor: Cursor = ""


class ListKnowledge(Arguments):
    """List what is known: statements extracted from conversations and documents, the latest first, with their state.

    A superseded statement was true once; of two that contradict each other, nobody has decided yet which is true.
    """

    words: str = Field(
        "", max_length=200, description="Only statements that have all of these words, or their topic has."
    )
    space: ReadSpace = ""
    limit: Limit = 20
    offset: int = Field(0, ge=0, le=100_000, description="How many to leave out at the beginning.")


class AddMemory(Arguments):
    """Store a text in memory, so that it is recalled in the user's conversations and found by search.

    It is stored in the user's personal space, which nobody else can read, or in the named group or team.
    """

    text: str = Field(description="The text, understandable without its context.")
    space: str = Field(
        "",
        max_length=200,
        description='The space to store it in: a name from list_spaces, or "team". Omit it for the personal space.',
    )


class ForgetMemory(Arguments):
    """Forget one exchange permanently: nobody can find or recall it any more. Ask the user first."""

    exchange_id: str = Field(description="The id of an exchange, from search_memory.")


class Ask(Arguments):
    """Send a message in the user's name to the team's model, which recalls memory before it answers.

    The message and its answer become a conversation in Cato and part of its memory. To look something up yourself, use
    search_memory instead.
    """

    message: str = Field(min_length=1, description="The message.")
    thread_id: str = Field("", max_length=40, description="The conversation to continue; omit it for a new one.")
    space: str = Field(
        "",
        max_length=200,
        description="The space of a new conversation, from list_spaces; omit it for the personal one.",
    )
