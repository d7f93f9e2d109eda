"""Resources and prompts: threads, documents and statements as Markdown, and the saved prompts that a person reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from cato_web.api.paging import paginate
from cato_web.mcp.caller import UNTRUSTED_NOTE, Caller, parse_id
from cato_web.mcp.reading import forgotten_turns
from chat import access, prompt_library
from chat.export import to_markdown
from memory import api as memory
from memory.api import Document, InvalidInputError, NotFoundError, Statement, clean_text, neutralise_line

THREAD_URI, DOCUMENT_URI, STATEMENT_URI = "cato://threads/", "cato://documents/", "cato://statements/"
_PAGE_SIZE = 50
_MAX_TURNS = 200
_MAX_LENGTH = 200_000  # characters of one resource
_CHUNKS_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class ResourceEntry:
    """A thread, document or statement in the list."""

    uri: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class PromptEntry:
    """A saved prompt in the list, with the space that it is in."""

    name: str
    description: str


def list_resources(caller: Caller, cursor: str | None) -> tuple[Sequence[ResourceEntry], str | None]:
    """Return a page of the readable threads, most recently active first, then of documents, then of statements, newest first.

    Also return the cursor of the next page, None at the end. Raises InvalidInputError for an invalid cursor.
    """
    kind, _separator, after = (cursor or "threads:").partition(":")
    if kind == "threads":
        rows = access.readable_threads(caller.person_id).select_related("space")
        threads, after_next = paginate(rows, "last_message_at", after or None, _PAGE_SIZE)
        entries = [
            ResourceEntry(f"{THREAD_URI}{thread.id}", thread.title, f"Conversation, {thread.space.display_name}")
            for thread in threads
        ]
        return entries, f"threads:{after_next}" if after_next else "documents:"
    if kind == "documents":
        found = memory.active_documents(caller.spaces()).exclude(live_version=None).select_related("space")
        documents, after_next = paginate(found, "created_at", after or None, _PAGE_SIZE)
        entries = [
            ResourceEntry(f"{DOCUMENT_URI}{row.pk}", row.name, f"Document, {row.space.display_name}")
            for row in documents
        ]
        return entries, f"documents:{after_next}" if after_next else "statements:"
    if kind != "statements":
        raise InvalidInputError(_("Invalid cursor. Omit it for the first page, then pass `next`."))
    known = memory.readable_statements(caller.spaces()).select_related("exchange__space")
    statements, after_next = paginate(known, "last_said_at", after or None, _PAGE_SIZE)
    entries = [_statement_entry(row) for row in statements]
    return entries, f"statements:{after_next}" if after_next else None


def read_resource(caller: Caller, uri: str) -> str:
    """Return a thread, document or statement as Markdown, at most 200,000 characters of it. Raises NotFoundError."""
    if uri.startswith(THREAD_URI):
        return _limited(_thread_parts(caller, uri.removeprefix(THREAD_URI)))
    if uri.startswith(DOCUMENT_URI):
        return _limited(_document_parts(caller, uri.removeprefix(DOCUMENT_URI)))
    if uri.startswith(STATEMENT_URI):
        return _limited(_statement_parts(caller, uri.removeprefix(STATEMENT_URI)))
    raise NotFoundError


def list_prompts(caller: Caller, cursor: str | None) -> tuple[Sequence[PromptEntry], str | None]:
    """Return a page of the saved prompts by name, and the cursor of the next page, None at the end."""
    prompts = prompt_library.list_from(caller.person_id, after=clean_text(cursor or ""), limit=_PAGE_SIZE + 1)
    entries = [PromptEntry(prompt.name, str(prompt.space.display_name)) for prompt in prompts[:_PAGE_SIZE]]
    return entries, entries[-1].name if len(prompts) > _PAGE_SIZE else None


def get_prompt(caller: Caller, name: str, text: str) -> str:
    """Return the text of a saved prompt, with `text` after it. Raises NotFoundError."""
    found = prompt_library.find_text(caller.person_id, f"/{name} {text}")
    if not found:
        raise NotFoundError
    return found


def _thread_parts(caller: Caller, id: str) -> Iterator[str]:
    thread = access.get_thread(caller.person_id, parse_id(id))
    branch = thread.turns.active_branch()
    left_out = max(0, branch.count() - _MAX_TURNS)
    yield f"<!-- {UNTRUSTED_NOTE} -->\n\n"
    if left_out:
        yield f"<!-- {left_out} earlier turns are left out; get_thread reads them. -->\n\n"
    turns = list(branch.select_related("author")[left_out:])
    forgotten = forgotten_turns(turns)
    yield from to_markdown(thread, [turn for turn in turns if turn.id not in forgotten], spaces=caller.spaces())


def _document_parts(caller: Caller, id: str) -> Iterator[str]:
    document: Document = memory.readable_document(caller.spaces(), parse_id(id))
    yield f"<!-- {UNTRUSTED_NOTE} -->\n\n# {neutralise_line(document.name)}\n"
    since, place = 0, ""
    while chunks := memory.list_chunks(document, since=since, count=_CHUNKS_AT_ONCE):
        for chunk in chunks:
            if chunk.location and chunk.location != place:
                place = chunk.location
                yield f"\n\n## {neutralise_line(place)}\n"
            yield f"\n{'' if chunk.text is None else chunk.text}\n"
        since = chunks[-1].index + 1


def _statement_entry(row: Statement) -> ResourceEntry:
    description = f"Statement ({row.state} {row.kind}), {row.exchange.space.display_name}"
    return ResourceEntry(f"{STATEMENT_URI}{row.pk}", row.exchange.user_message, description)


def _statement_parts(caller: Caller, id: str) -> Iterator[str]:
    statement_id = parse_id(id)
    is_readable = memory.readable_statements(caller.spaces()).filter(pk=statement_id).exists()
    row = next(iter(memory.load_statements([statement_id])), None) if is_readable else None
    if row is None:
        raise NotFoundError
    yield f"<!-- {UNTRUSTED_NOTE} -->\n\n# {neutralise_line(row.exchange.user_message)}\n\n"
    yield f"- {row.kind}, on {neutralise_line(row.topic)}\n- {row.state} since {row.state_since:%Y-%m-%d}"
    yield f", superseded by {STATEMENT_URI}{row.superseded_by_id}\n" if row.superseded_by_id else "\n"
    for other in memory.conflicts_of([row])[row.pk]:
        yield f"- contradicts {STATEMENT_URI}{other.pk}: {neutralise_line(other.exchange.user_message)}\n"
    yield f"- said from {row.first_said_at:%Y-%m-%d} to {row.last_said_at:%Y-%m-%d}\n"
    if row.confirmed_by:
        yield f"- confirmed on {row.confirmed_at:%Y-%m-%d} by {neutralise_line(str(row.confirmed_by))}\n"
    yield f"- visible to: {row.exchange.space.display_name}\n\n## Sources\n"
    for support in memory.sources_of([row])[row.pk]:
        said = support.exchange
        yield f"\n> {neutralise_line(support.quote)}\n\n{neutralise_line(str(said.owner))}, {said.timestamp:%Y-%m-%d}"
        yield f", {THREAD_URI}{said.thread_id}\n" if said.thread_id else "\n"


def _limited(parts: Iterable[str]) -> str:
    texts, length = [], 0
    for part in parts:
        texts.append(part[: _MAX_LENGTH - length])
        length += len(part)
        if length > _MAX_LENGTH:
            texts.append("\n\n<!-- The rest is left out; read_document or get_thread reads it. -->\n")
            break
    return "".join(texts)
