"""What the export of an account of Cato contains beside its threads, notes and prompts.

Opinions and decisions name exchanges by their ids; those of turns are found by the turn, since an import stores them
anew.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from chat.imports.formats.values import Fields, fields_in, moment_in, name_in, rows_in, text_in

# Of one statement; in a forged file, all could contradict each other.
_MAX_CONFLICTS = 20


@dataclass(frozen=True, slots=True)
class ArchivedDocument:
    """A document; `files` are the paths of the originals of its versions in the export, the oldest first."""

    id: str
    title: str
    metadata: Fields
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchivedAttachment:
    """A file of messages; `path` is that in the export, "" if the file was lost."""

    id: str
    title: str
    path: str
    turn_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArchivedInstruction:
    """A standing instruction."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ArchivedOpinion:
    """An opinion of a person about an exchange: that of a turn, or a note."""

    title: str
    exchange: ArchivedExchange
    kind: str


@dataclass(frozen=True, slots=True)
class ArchivedRecord:
    """A record, with the id by which its program knows it; `vector` is None if Cato embedded the text."""

    title: str
    id: str
    exchange_id: str
    text: str
    metadata: Fields
    vector: tuple[float, ...] | None
    at: datetime | None


@dataclass(frozen=True, slots=True)
class ArchivedExchange:
    """How an export names an exchange: by its id, and by that of its turn, or by its document and number there.

    `turn_id` and `document_id` are "" for a note.
    """

    id: str
    turn_id: str
    document_id: str = ""
    chunk_index: int = 0


@dataclass(frozen=True, slots=True)
class ArchivedSupersession:
    """A decision of a person about two exchanges on one subject."""

    title: str
    later: ArchivedExchange
    earlier: ArchivedExchange
    is_confirmed: bool


@dataclass(frozen=True, slots=True)
class ArchivedStatement:
    """A statement with the exchanges that support it, each with the words that do; `was_*`: by the exported person.

    `successor` and `conflicts` are the ids of other statements.
    """

    id: str
    title: str
    kind: str
    topic: str
    state: str
    state_since: datetime | None
    was_decided: bool
    successor: str
    conflicts: tuple[str, ...]
    confirmed_at: datetime | None
    was_confirmed: bool
    sources: tuple[tuple[ArchivedExchange, str], ...]


ArchivedPart = (
    ArchivedDocument
    | ArchivedAttachment
    | ArchivedInstruction
    | ArchivedOpinion
    | ArchivedRecord
    | ArchivedSupersession
    | ArchivedStatement
)


def _read_document(item: Fields) -> ArchivedDocument:
    versions = rows_in(item.get("versions"))
    files = tuple(path for version in versions if (path := text_in(version.get("file"))))
    return ArchivedDocument(name_in(item.get("id")), text_in(item.get("name")), fields_in(item.get("metadata")), files)


def _read_attachment(item: Fields) -> ArchivedAttachment:
    ids = item.get("turn_ids")
    turn_ids = tuple(map(name_in, ids)) if isinstance(ids, list) else ()
    return ArchivedAttachment(name_in(item.get("id")), text_in(item.get("name")), text_in(item.get("file")), turn_ids)


def _read_instruction(item: Fields) -> ArchivedInstruction:
    text = text_in(item.get("text")).strip()
    return ArchivedInstruction(text[:80], text)


def _read_opinion(item: Fields) -> ArchivedOpinion:
    kind = text_in(item.get("opinion"))
    return ArchivedOpinion(kind, _exchange(item, "exchange_id", "turn_id"), kind)


def _read_record(item: Fields) -> ArchivedRecord:
    id, text, values = text_in(item.get("record")), text_in(item.get("user_message")), item.get("vector")
    vector = tuple(value for value in values if isinstance(value, float)) if isinstance(values, list) else None
    metadata, at = fields_in(item.get("metadata")), moment_in(item.get("timestamp"))
    return ArchivedRecord(id[:80], id, name_in(item.get("id")), text, metadata, vector, at)


def _read_supersession(item: Fields) -> ArchivedSupersession:
    later, earlier = _exchange(item, "later_id", "later_turn_id"), _exchange(item, "earlier_id", "earlier_turn_id")
    return ArchivedSupersession(later.id, later, earlier, item.get("is_confirmed") is True)


def _read_statement(item: Fields) -> ArchivedStatement:
    conflicts = item.get("contradicts")
    return ArchivedStatement(
        id=name_in(item.get("id")),
        title=text_in(item.get("text")),
        kind=text_in(item.get("kind")),
        topic=text_in(item.get("topic")),
        state=text_in(item.get("state")),
        state_since=moment_in(item.get("state_since")),
        was_decided=item.get("is_decided_by_person") is True,
        successor=name_in(item.get("superseded_by")),
        conflicts=tuple(map(name_in, conflicts[:_MAX_CONFLICTS])) if isinstance(conflicts, list) else (),
        confirmed_at=moment_in(item.get("confirmed_at")),
        was_confirmed=item.get("is_confirmed_by_person") is True,
        sources=tuple((_source(row), text_in(row.get("quote"))) for row in rows_in(item.get("sources"))),
    )


def _source(item: Fields) -> ArchivedExchange:
    index = item.get("chunk_index")
    in_document = (name_in(item.get("document_id")), index) if isinstance(index, int) else ("", 0)
    return ArchivedExchange(name_in(item.get("exchange_id")), name_in(item.get("turn_id")), *in_document)


def _exchange(item: Fields, id: str, turn_id: str) -> ArchivedExchange:
    return ArchivedExchange(name_in(item.get(id)), name_in(item.get(turn_id)))


def _is_document(item: Fields) -> bool:
    return isinstance(item.get("versions"), list) and {"name", "source", "metadata"} <= item.keys()


def _has(*keys: str) -> Callable[[Fields], bool]:
    return lambda item: item.keys() >= set(keys)


# The parts, each with what recognises its objects and what parses them.
PARTS: tuple[tuple[Callable[[Fields], bool], Callable[[Fields], ArchivedPart]], ...] = (
    (_is_document, _read_document),
    (_has("file", "media_type", "turn_ids"), _read_attachment),
    (_has("text", "state", "turn_id", "off_at"), _read_instruction),
    (_has("exchange_id", "opinion", "turn_id"), _read_opinion),
    (_has("record", "vector", "user_message"), _read_record),
    (_has("later_id", "earlier_id", "is_confirmed"), _read_supersession),
    (_has("text", "kind", "topic", "superseded_by", "sources"), _read_statement),
)
