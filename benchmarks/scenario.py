"""People and commands that use a running Cato in all ways while something fails, and what must be true afterwards."""

from __future__ import annotations

import random
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import httpx

from benchmarks import memory_actions, reindexing, team_actions
from benchmarks.consistency import TurnRow, is_settled, turns, violations
from benchmarks.figures import format_counts
from benchmarks.index_consistency import vectors
from benchmarks.memory_actions import MemoryActions
from benchmarks.posting import Posts, run_beside, run_posters
from benchmarks.reindexing import Reindexing
from benchmarks.team_actions import TeamActions, join_team
from tests.fake_endpoint import start as start_endpoint
from tests.server import Cato, Client, wait_for

KEY = "kill"
PEOPLE = ("Alice Owner", "Bob Team", "Charlie Other")
# Seconds, beside much other load. An answer is interrupted after 15 s without progress; a worker's lease lasts 45 s.
SETTLED_WITHIN = 1200.0
_FEW_MESSAGES = 5  # of each person


@dataclass
class Report:
    """The actions during a run, and their results."""

    posts: Posts = field(default_factory=Posts)
    settled_after: float = 0.0  # seconds from the end of the actions
    states: Counter[str] = field(default_factory=Counter)  # of turns, before any was resumed
    resumed: int = 0
    actions: Counter[str] = field(default_factory=Counter)  # acknowledged ones of the fourth person
    team_actions: Counter[str] = field(default_factory=Counter)  # of the fifth one
    reindexing: Counter[str] = field(default_factory=Counter)
    statements: int = 0
    vectors: int = 0
    violations: list[str] = field(default_factory=list)

    def rows(self) -> list[tuple[str, object]]:
        """Return the rows of a table."""
        messages = self.posts.messages
        return [
            ("messages acknowledged", sum(message.is_acknowledged for message in messages)),
            ("never acknowledged", sum(not message.is_acknowledged for message in messages)),
            ("sent more than once", sum(message.sent > 1 for message in messages)),
            (
                "responses that did not acknowledge",
                format_counts({f"HTTP {s}": n for s, n in self.posts.statuses.items()}),
            ),
            ("turns", format_counts(self.states)),
            ("interrupted, then resumed", self.resumed),
            ("of the fourth person", format_counts(self.actions)),
            ("of the fifth person", format_counts(self.team_actions)),
            ("commands that reindexed", format_counts(self.reindexing)),
            ("statements", self.statements),
            ("vectors in all indexes", self.vectors),
            ("settled after, s", self.settled_after),
            ("violations", len(self.violations)),
        ]


@dataclass
class Actors:
    """The people and commands that are active."""

    people: list[Client]
    posts: Posts
    memory: MemoryActions
    team: TeamActions
    reindexing: Reindexing

    def have_acted(self) -> bool:
        """Return whether each kind of action happened, and everybody posted a few messages."""
        done = self.memory.counts().keys() | self.team.counts().keys()
        return (
            done >= {"note", "document", "import", "deleted", "decision", "moved"}
            and bool(self.reindexing.runs)
            and len(self.posts.messages) > _FEW_MESSAGES * len(self.people)
        )


@contextmanager
def model() -> Iterator[dict[str, str]]:
    """Start a scripted model endpoint; yield the environment of a Cato that uses it."""
    with start_endpoint() as endpoint:
        endpoint.script(KEY, tokens=30, token_delay=0.03, extracts=True)
        yield {
            "OPENAI_BASE_URL": endpoint.openai_url, "OPENAI_API_KEY": KEY, "CATO_CHAT_MESSAGES_PER_MINUTE": "100000",
            "CATO_CHAT_CONCURRENT_ANSWERS": "100000",
        }  # fmt: skip


@contextmanager
def act(cato: Cato, administrator: Client, seed: int, report: Report) -> Iterator[Actors]:
    """Create the accounts, and let everybody act while the block runs, but at least until each has done everything."""
    people = [cato.join(administrator, name) for name in PEOPLE]
    person = cato.join(administrator, "Dora Archive")
    headers = {"Authorization": f"Bearer {person.create_token('read', 'write')}"}
    clients = [httpx.Client(base_url=url, timeout=30, headers=headers) for url in cato.urls]
    # The last one is not in the group of the fifth person.
    team = join_team(cato, administrator, people[-1], report.posts, random.Random(f"{seed} team"))
    actors = Actors(
        people=[*people, team.pages[0]],
        posts=report.posts,
        memory=MemoryActions(clients, random.Random(f"{seed} memory")),
        team=team,
        reindexing=Reindexing(cato, random.Random(f"{seed} reindexing")),
    )
    with ExitStack() as acting:
        acting.enter_context(run_posters(cato, people, seed, report.posts))
        for actor in (actors.memory, team, actors.reindexing):
            acting.enter_context(run_beside(actor.run))
        yield actors
        wait_for(actors.have_acted, "everybody to have acted", SETTLED_WITHIN)


def settle_and_judge(cato: Cato, actors: Actors, report: Report) -> None:
    """Wait until nothing is under way any more, and add what is wrong to the report."""
    started = time.monotonic()
    # Twice: what is read, imported or stated at the end is embedded after that.
    for _ in range(2):
        wait_for(lambda: _is_done(cato), "everything to be read, imported, erased and indexed", SETTLED_WITHIN, 0.5)
        actors.team.set_extraction("off")
    report.settled_after = time.monotonic() - started
    report.actions, report.team_actions = actors.memory.counts(), actors.team.counts()
    report.reindexing = actors.reindexing.runs
    report.violations += violations(cato, report.posts.messages)
    _resume_interrupted(cato, actors.people, report)
    report.violations += [
        *violations(cato, report.posts.messages),
        *memory_actions.violations(cato, [*actors.memory.stored, *actors.team.stored]),
        *team_actions.violations(cato, actors.team),
    ]
    report.vectors = sum(map(len, vectors(cato).values()))
    ((report.statements,),) = cato.sql("SELECT count(*) FROM memory_statement")


def _is_done(cato: Cato) -> bool:
    """Return whether nothing is under way any more, and statements were extracted."""
    ((statements,),) = cato.sql("SELECT count(*) FROM memory_statement")
    ((extracting,),) = cato.sql("SELECT count(*) FROM memory_spaceknowledge WHERE locked_until IS NOT NULL")
    if not statements or extracting:
        return False
    return memory_actions.is_done(cato) and reindexing.is_done(cato) and is_settled(cato)


def _resume_interrupted(cato: Cato, people: list[Client], report: Report) -> None:
    """Resume every interrupted answer, each of which must then be complete and continue what there was."""
    before = {row.id: row for row in turns(cato)}
    report.states.update(row.state for row in before.values())
    interrupted = [row for row in before.values() if row.state == "interrupted"]
    owners = {
        message.stored_key: person
        for person in people
        for message in report.posts.messages
        if message.message.startswith(person.name)
    }
    for row in interrupted:
        _resume(owners[uuid.UUID(row.key).hex], row)
    wait_for(lambda: is_settled(cato), "the resumed answers", SETTLED_WITHIN)
    after = {row.id: row for row in turns(cato)}
    for row in interrupted:
        now = after[row.id]
        if now.state == "complete" and now.answer.startswith(row.answer) and row.exchange in (None, now.exchange):
            report.resumed += 1
        else:
            report.violations.append(
                f"the answer to {row.message!r} was resumed and is now {now.state}: {now.answer[:80]!r}"
            )


def _resume(person: Client, row: TurnRow) -> None:
    action = "resume" if row.answer.strip() else "retry"
    path = f"/t/{uuid.UUID(row.thread)}/turns/{uuid.UUID(row.id)}/{action}"
    wait_for(lambda: person.post(path, htmx=True).status_code == 204, f"{row.message!r} to be resumed")
