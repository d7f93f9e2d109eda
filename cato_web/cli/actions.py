"""The actions of the command line that need the database: search, statistics, questions. Run by a command or a web process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.db import DatabaseError
from django.db.migrations.exceptions import MigrationSchemaMissing
from django.utils.translation import override

from cato_web.accounts.models import User
from cato_web.accounts.services import UserLookupError, get_user_by_name
from cato_web.cli.messages import CommandFailedError, CommandRequest, CommandResult, UsageError
from memory import api as memory
from memory.api import CatoError, Space, StatementFacts, disk_use, excerpt, index_location, parse_uuid

_UNITS = ("bytes", "KB", "MB", "GB")


@contextmanager
def expected_errors() -> Iterator[None]:
    """Turn expected errors into CommandFailedError."""
    try:
        yield
    except CatoError as error:
        raise CommandFailedError(str(error)) from error
    except (DatabaseError, MigrationSchemaMissing) as error:
        raise CommandFailedError("The database is not ready: start Cato once with `make run` first.") from error


def resolve_user(name: str | None) -> User:
    """Return the account of this name, or the only one for None. Raises UsageError and CommandFailedError."""
    if name:
        try:
            return get_user_by_name(name)
        except UserLookupError as error:
            raise UsageError(str(error)) from error
    users = list(User.objects.filter(is_active=True)[:2])
    if len(users) == 1:
        return users[0]
    if users:
        raise UsageError("There are several accounts. Name one with --user NAME.")
    raise CommandFailedError("There is no account yet. Start Cato and create one.")


def resolve_space(person_id: uuid.UUID, name: str | None) -> Space:
    """Return the readable space with this id or name, or the personal space for None. Raises NotFoundError."""
    if name is None:
        return memory.personal_space(person_id)
    id = parse_uuid(name)
    return memory.space_by_name(person_id, name) if id is None else memory.get_space(person_id, id)


def query(request: CommandRequest, person: User) -> CommandResult:
    """Search all readable spaces, or one, without the relevance gate. Raises errors of memory."""
    spaces = memory.readable_space_ids(person.pk)
    if request.space is not None:
        spaces &= {resolve_space(person.pk, request.space).pk}
    results = memory.search(request.text, spaces=spaces, count=request.count, reader_id=person.pk)
    facts = memory.statement_facts([hit.exchange.id for hit in results.results if hit.exchange.statement_state])
    rows = [
        {
            "id": str(hit.exchange.id),
            "similarity": round(hit.similarity, 4) if hit.similarity is not None else None,
            "below_gate": hit.is_below_gate,
            "said_at": hit.exchange.timestamp.isoformat(),
            "who": hit.exchange.owner_name,
            "source": hit.exchange.source,
            "statement": _statement(facts.get(hit.exchange.id)),
            "thread_id": str(hit.exchange.thread_id) if hit.exchange.thread_id else None,
            "session_id": str(hit.exchange.session_id) if hit.exchange.session_id else None,
            "user_message": hit.exchange.user_message,
            "assistant_message": hit.exchange.assistant_message,
            "reason": hit.explanation,
        }
        for hit in results.results
    ]
    lines = [_query_line(row) for row in rows]
    with override("en"):
        lines[:0] = filter(None, [results.note_text])
    return CommandResult(rows, "\n".join(lines) or "Nothing was found.", {**embedding_meta(), "note": results.note})


def _statement(facts: StatementFacts | None) -> dict[str, Any] | None:
    """Return the fields of a statement, None for another hit."""
    if facts is None:
        return None
    fields = asdict(facts)
    dates = {name: value.isoformat() for name, value in fields.items() if isinstance(value, datetime)}
    return fields | dates | {"sources": [str(id) for id in facts.sources]}


def _query_line(row: dict[str, Any]) -> str:
    similarity = "keyword" if row["similarity"] is None else f"{row['similarity']:.4f}"
    statement = row["statement"]
    who = f"Knowledge ({statement['state']} {statement['kind']})" if statement else row["who"]
    line = f"{similarity}  {row['said_at'][:10]}  {who}: {excerpt(row['user_message'], 90)}"
    if statement:
        first, last = statement["first_said_at"][:10], statement["last_said_at"][:10]
        return f"{line}\n  Said from {first} to {last}. Sources: {', '.join(statement['sources'])}"
    return f"{line}\n  Answer: {excerpt(row['assistant_message'], 90)}" if row["assistant_message"] else line


def stats(request: CommandRequest, person: User) -> CommandResult:
    """Count what the user can read, and locate the vector store."""
    counts = memory.memory_counts(memory.readable_space_ids(person.pk))
    size = disk_use().index
    figures = asdict(counts) | {"store": index_location(), "store_bytes": size}
    sources = ", ".join(f"{name} {count:,}" for name, count in counts.by_source.items())
    lines = {
        "Exchanges": f"{counts.exchanges:,}",
        "By source": sources or "none yet",
        "Still to be embedded": f"{counts.pending:,}",
        "Failed": f"{counts.failed:,}",
        "Still to be erased": f"{counts.to_erase:,}",
        "Embedding model": counts.model,
        "Vector dimension": str(counts.dimension or "not known before the first text"),
        "Retrieval strategy": counts.strategy,
        "Vector store": index_location() or "not started yet" if counts.enabled else "disabled",
        "Size on disk": _format_size(size),
    }
    width = max(map(len, lines))
    return CommandResult(
        figures, "\n".join(f"{name:<{width}}  {value}" for name, value in lines.items()), embedding_meta()
    )


def _format_size(size: int | None) -> str:
    if size is None:
        return "not on this machine, or not written yet"
    value, unit = float(size), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    return f"{value:,.{1 if unit else 0}f} {_UNITS[unit]}"


def embedding_meta() -> dict[str, str | None]:
    """Return the configured embedding model."""
    provider, model = memory.configured_model()
    return {"provider": provider, "model": model}
