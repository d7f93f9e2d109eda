"""Consistency checks after processes were killed: posted messages against database and index."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks import index_consistency
from benchmarks.memory_actions import IMPORTED
from tests.server import Cato

ENDED = ("complete", "stopped", "interrupted", "failed")


@dataclass
class PostedMessage:
    """A message that somebody posted with its client key; acknowledged once a response below 400 arrived."""

    message: str
    is_secret: bool = False  # posted in a thread that is not remembered
    key: str = field(default_factory=lambda: str(uuid.uuid4()))
    wanted: str | None = None  # its thread; None: a new one
    thread: str | None = None
    sent: int = 0  # number of attempts
    may_be_stopped: bool = False

    @property
    def stored_key(self) -> str:
        """The client key of its turn, which depends on the text as well."""
        return uuid.uuid5(uuid.UUID(self.key), self.message).hex

    @property
    def is_acknowledged(self) -> bool:
        return self.thread is not None


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn in the database."""

    id: str
    thread: str
    key: str
    message: str
    answer: str
    state: str
    exchange: str | None
    error: str


def turns(cato: Cato) -> list[TurnRow]:
    """Return all turns."""
    query = "SELECT id, thread_id, client_key, message, answer, state, exchange_id, error FROM chat_turn"
    return [TurnRow(*row) for row in cato.sql(query)]


def is_settled(cato: Cato) -> bool:
    """Return whether no answer is running or queued, and everything due is in the index."""
    ((waiting,),) = cato.sql(f"SELECT count(*) FROM chat_turn WHERE state NOT IN {ENDED}")
    current = "generation_id IN (SELECT id FROM memory_indexgeneration WHERE state <> 'retired')"
    ((due,),) = cato.sql(f"SELECT count(*) FROM memory_embeddingjob WHERE state = 'pending' AND {current}")
    return int(waiting) + int(due) == 0


def violations(cato: Cato, messages: Iterable[PostedMessage]) -> list[str]:
    """Return a sentence for every inconsistency; the store must be settled."""
    messages = list(messages)
    rows = turns(cato)
    secrets = {message.message for message in messages if message.is_secret}
    return [*_of_turns(rows, messages), *_of_memory(cato, rows, secrets), *index_consistency.violations(cato)]


def _of_turns(rows: list[TurnRow], messages: list[PostedMessage]) -> list[str]:
    wrong = []
    by_key: dict[str, list[TurnRow]] = defaultdict(list)
    for row in rows:
        by_key[row.key].append(row)
    for item in messages:
        found = by_key.pop(item.stored_key, [])
        if len(found) > 1 or (item.is_acknowledged and not found):
            wrong.append(f"{item.message!r}, {_describe_receipt(item)}, has {len(found)} turns")
        wrong += [f"{item.message!r} was kept as {row.message!r}" for row in found if row.message != item.message]
        if item.thread and any(row.thread != uuid.UUID(item.thread).hex for row in found):
            wrong.append(f"{item.message!r} is in another thread than posted")
    others = [row for rows in by_key.values() for row in rows if not row.message.startswith(IMPORTED)]
    wrong += [f"nobody posted {row.message!r}" for row in others]
    stoppable = {item.stored_key for item in messages if item.may_be_stopped}
    wrong += [
        f"the answer to {row.message!r} is {row.state} ({row.error})"
        for row in rows
        if row.state not in ("complete", "interrupted") and not (row.state == "stopped" and row.key in stoppable)
    ]
    wrong += [
        f"the answer to {row.message!r} is complete and empty"
        for row in rows
        if row.state == "complete" and not row.answer
    ]
    return wrong


def _describe_receipt(item: PostedMessage) -> str:
    return f"{'acknowledged' if item.is_acknowledged else 'not acknowledged'} after {item.sent} sendings"


def _of_memory(cato: Cato, rows: list[TurnRow], secrets: set[str]) -> list[str]:
    """Check that each answered turn has one exchange that says the same."""
    wrong = []
    columns = "id, turn_id, user_message, assistant_message"
    exchanges = cato.sql(f"SELECT {columns} FROM memory_exchange WHERE forgotten_at IS NULL")
    count = Counter(turn for _, turn, *_ in exchanges)
    texts = {str(turn): (str(exchange), user, answer) for exchange, turn, user, answer in exchanges}
    for row in rows:
        expected = int(bool(row.answer.strip()) and row.message not in secrets)
        if count[row.id] != expected:
            wrong.append(f"the {row.state} turn {row.message!r} has {count[row.id]} exchanges, not {expected}")
        elif expected and texts[row.id] != (row.exchange, row.message, row.answer):
            wrong.append(f"the exchange of {row.message!r} says something else than its turn")
    return wrong
