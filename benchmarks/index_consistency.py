"""Consistency checks of the index, of statements and of jobs, after faults."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from benchmarks.bare_chroma import chroma_client
from tests.server import Cato

_STUCK_AFTER = 120.0  # seconds; a lease of a killed worker lasts 45
# Tables of jobs with the condition for those that a worker takes.
_JOBS = {
    "memory_embeddingjob": "generation_id IN (SELECT id FROM memory_indexgeneration WHERE state <> 'retired')",
    "memory_erasurejob": "1 = 1",
    "memory_documentversion": "stage IN ('received', 'reading', 'chunking')",
    "memory_operation": "1 = 1",
    "memory_spaceknowledge": "is_on = TRUE AND is_paused = FALSE",
    "chat_importjob": "1 = 1",
}
_SOURCES = """
SELECT e.user_message, count(x.id) FROM memory_exchange e
LEFT JOIN memory_support s ON s.statement_id = e.id
LEFT JOIN memory_exchange x ON x.id = s.exchange_id AND x.forgotten_at IS NULL AND x.space_id = e.space_id
WHERE e.source = 'knowledge' AND e.forgotten_at IS NULL GROUP BY e.id, e.user_message
"""
_VECTORS = """
SELECT j.exchange_id, j.version, j.parts, e.space_id FROM memory_embeddingjob j
JOIN memory_exchange e ON e.id = j.exchange_id JOIN memory_indexgeneration g ON g.id = j.generation_id
WHERE j.state = 'done' AND e.forgotten_at IS NULL AND g.state <> 'retired'
"""
_INDEXED = """
SELECT e.user_message, e.version, j.version FROM memory_exchange e
CROSS JOIN memory_indexgeneration g
LEFT JOIN memory_embeddingjob j ON j.exchange_id = e.id AND j.generation_id = g.id AND j.state = 'done'
WHERE e.forgotten_at IS NULL AND g.state = 'serving' AND (j.version IS NULL OR j.version <> e.version)
"""


def violations(cato: Cato) -> list[str]:
    """Return a sentence for every inconsistency; the store must be settled."""
    return [*_of_index(cato), *_of_statements(cato), *_of_jobs(cato)]


def count_drift(cato: Cato) -> int:
    """Return the number of vectors and rows that differ."""
    return len(_of_index(cato))


def vectors(cato: Cato) -> dict[str, dict[str, str]]:
    """Return the ids of the vectors in each collection, with the space that each is stored with."""
    found = {}
    for collection in chroma_client(chroma_url(cato)).list_collections():
        rows: Any = collection.get(include=["metadatas"])
        found[collection.name] = {
            id: fields["space"] for id, fields in zip(rows["ids"], rows["metadatas"], strict=True)
        }
    return found


def chroma_url(cato: Cato) -> str:
    """Return the URL of this Cato's Chroma server: configured, else from `serve`'s note."""
    if "CHROMA_URL" in cato.environment:
        return cato.environment["CHROMA_URL"]
    url: str = json.loads((cato.home / "data" / "serve.json").read_text())["chroma_url"]
    return url


def _of_index(cato: Cato) -> list[str]:
    """Compare the rows with the vectors: the same ids and spaces, and none of a forgotten exchange in any collection."""
    wrong = [
        f"the exchange of {text!r} (version {version}) is noted as indexed in version {indexed}"
        for text, version, indexed in cato.sql(_INDEXED)
    ]
    query = (
        "SELECT c.name FROM memory_collection c JOIN memory_indexgeneration g ON g.id = c.generation_id WHERE g.state"
    )
    retired = {str(name) for (name,) in cato.sql(f"{query} = 'retired'")}
    used = {str(name) for (name,) in cato.sql(f"{query} <> 'retired'")}
    by_collection = vectors(cato)
    wrong += [f"no row names the collection {name}" for name in by_collection.keys() - retired - used]
    found = Counter((id, space) for name in used for id, space in by_collection.get(name, {}).items())
    expected = Counter(
        (f"{uuid.UUID(str(exchange))}:{part}:{version}", str(uuid.UUID(str(space))))
        for exchange, version, parts, space in cato.sql(_VECTORS)
        for part in ["whole", *(f"part{number}" for number in range(1, parts))]
    )
    wrong += [f"the index lacks {id} in space {space}" for id, space in expected - found]
    wrong += [f"the index holds {id} in space {space}, which no row has" for id, space in found - expected]
    live = {uuid.UUID(str(id)) for (id,) in cato.sql("SELECT id FROM memory_exchange WHERE forgotten_at IS NULL")}
    for name in retired:
        held = {uuid.UUID(id.partition(":")[0]) for id in by_collection.get(name, {})}
        wrong += [f"the former index holds {exchange}, which is forgotten" for exchange in held - live]
    terms = "SELECT count(*) FROM memory_lexicalentry l JOIN memory_exchange e ON e.id = l.exchange_id WHERE"
    ((misplaced,),) = cato.sql(f"{terms} l.space_id <> e.space_id OR e.forgotten_at IS NOT NULL")
    return wrong + [f"{misplaced} exchanges have terms in a wrong space"] * bool(misplaced)


def _of_statements(cato: Cato) -> list[str]:
    """Check that each statement has a source in its space, and none is there twice."""
    rows = cato.sql(_SOURCES)
    count = Counter(str(text) for text, _ in rows)
    wrong = [f"{text!r} has no source in its space" for text, sources in rows if not sources]
    wrong += [f"{text!r} is stated {number} times" for text, number in count.items() if number > 1]
    query = "SELECT count(*) FROM memory_statement s JOIN memory_exchange e ON e.id = s.exchange_id WHERE"
    ((forgotten,),) = cato.sql(f"{query} e.forgotten_at IS NOT NULL")
    return wrong + [f"{forgotten} statements are left of forgotten exchanges"] * bool(forgotten)


def _of_jobs(cato: Cato) -> list[str]:
    waiting = seconds_overdue(cato).items()
    return [f"a row of {table} has been due for {age:.0f} s" for table, age in waiting if age > _STUCK_AFTER]


def seconds_overdue(cato: Cato) -> dict[str, float]:
    """Return for each table of jobs how long its oldest due job that no worker holds has been waiting, in seconds."""
    now, ages = datetime.now(UTC), dict[str, float]()
    for table, condition in _JOBS.items():
        ((due,),) = cato.sql(
            f"SELECT min(CASE WHEN locked_until > due_at THEN locked_until ELSE due_at END) FROM {table} "
            f"WHERE state = 'pending' AND {condition}"
        )
        if due is not None:
            at = datetime.fromisoformat(due) if isinstance(due, str) else due
            at = at if at.tzinfo else at.replace(tzinfo=UTC)
            ages[table] = max((now - at).total_seconds(), 0.0)
    return ages
