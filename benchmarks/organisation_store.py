"""Fill a running Cato with the threads of a large organisation, run as a process of its own beside it.

    python -m benchmarks.organisation_store EXCHANGES PEOPLE

A tenth of the exchanges are in the personal space of the first person, three tenths in the team space, in threads of all
people, and the rest in their personal spaces; each thread has ten turns, and every fifth turn recalled three others. They
have words, jobs that are done, and no vectors: what is measured with them is SQL, and search by keyword. Prints questions
about stored texts, as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import django

if TYPE_CHECKING:
    from benchmarks.synthetic_store import Texts
    from cato_web.accounts.models import User
    from chat.models import Thread, ThreadSession, Turn
    from memory.models import Exchange, Space

TURNS = 10  # of each thread
THREADS_AT_ONCE = 200
DAYS = 730
QUESTIONS = 400


def fill(exchanges: int, people: int) -> list[str]:
    """Create the accounts and the threads; return questions about stored texts."""
    from benchmarks.synthetic_store import Texts
    from memory.models import Space
    from memory.spaces import access

    authors = _accounts(people)
    texts, dice = Texts(seed=7), random.Random(exchanges)
    team = Space.objects.get(kind=Space.Kind.TEAM)
    own = [access.personal_space(author.pk) for author in authors]
    stored = 0
    while stored < exchanges:
        places = [_place(dice, authors, own, team) for _ in range(THREADS_AT_ONCE)]
        stored += _store_threads(places, texts, dice)
        if stored % 100_000 == 0:
            print(f"{stored:,} exchanges", file=sys.stderr, flush=True)
    _set_dates()
    _analyse()
    questions = texts.questions()
    return [next(questions) for _ in range(QUESTIONS)]


def _set_dates() -> None:
    """Set the dates that are those of storing to those of the messages."""
    from django.db.models import F, OuterRef, Subquery

    from chat.models import Turn
    from memory.models import Exchange, RecallLogEntry

    Turn.objects.update(created_at=F("completed_at"))
    Exchange.objects.update(created_at=F("timestamp"))
    RecallLogEntry.objects.update(at=Subquery(Turn.objects.filter(pk=OuterRef("turn_id")).values("completed_at")[:1]))


def _analyse() -> None:
    """Do at once what the autovacuum of PostgreSQL does within some minutes."""
    from django.db import connection

    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def _accounts(count: int) -> list[User]:
    from cato_web.accounts.models import User
    from cato_web.accounts.services import create_person

    for number in range(User.objects.count(), count):
        create_person(name=f"Person {number}", email=f"person{number}@halden.example", password=None)
    return list(User.objects.order_by("joined_at", "pk")[:count])


def _place(dice: random.Random, authors: list[User], own: list[Space], team: Space) -> tuple[User, Space]:
    """Return the author and the space of a thread."""
    kind, number = dice.random(), dice.randrange(len(authors))
    if kind < 0.1:
        return authors[0], own[0]
    return (authors[number], team) if kind < 0.4 else (authors[number], own[number])


def _store_threads(places: list[tuple[User, Space]], texts: Texts, dice: random.Random) -> int:
    """Store a thread for each of these places; return the number of exchanges."""
    from django.db import transaction

    from chat.models import Thread, ThreadSession, Turn
    from memory.index import generations
    from memory.lexical.indexing import build_entries, save_entries
    from memory.models import EmbeddingJob, Exchange, Job, RecallLogEntry

    threads, sessions, turns, exchanges = [], [], [], []
    for author, space in places:
        thread, session = _thread(author, space, dice)
        threads.append(thread)
        sessions.append(session)
        for turn, exchange in _turns(thread, session, texts):
            turns.append(turn)
            exchanges.append(exchange)
        thread.title = turns[-1].message[:80]
    done = {
        "generation": generations.active_generation(), "state": Job.State.DONE, "version": 1, "parts": 0,
        "due_at": threads[0].created_at,
    }  # fmt: skip
    entries = build_entries(exchanges)
    with transaction.atomic():
        Thread.objects.bulk_create(threads)
        ThreadSession.objects.bulk_create(sessions)
        Turn.objects.bulk_create(turns)
        for number, thread in enumerate(threads, start=1):
            thread.head = turns[number * TURNS - 1]
        Thread.objects.bulk_update(threads, ["head"])
        Exchange.objects.bulk_create(exchanges)
        save_entries(entries)
        EmbeddingJob.objects.bulk_create(EmbeddingJob(exchange=exchange, **done) for exchange in exchanges)
        RecallLogEntry.objects.bulk_create(
            RecallLogEntry(
                turn_id=turn.id, exchange=exchanges[number - rank], rank=rank, score=0.5, strategy="hybrid", reason="Close"
            )
            for number, turn in enumerate(turns)
            if turn.position == TURNS // 2 or turn.position == TURNS - 1
            for rank in (1, 2, 3)
        )  # fmt: skip
    return len(exchanges)


def _thread(author: User, space: Space, dice: random.Random) -> tuple[Thread, ThreadSession]:
    from chat.models import Thread, ThreadSession

    began = datetime.now(UTC) - timedelta(minutes=dice.randrange(DAYS * 24 * 60))
    thread = Thread(
        owner=author, space=space, created_at=began, last_message_at=began + timedelta(minutes=2 * TURNS),
        changed_at=began + timedelta(minutes=2 * TURNS),
    )  # fmt: skip
    return thread, ThreadSession(thread=thread, started_by=author, started_at=began)


def _turns(thread: Thread, session: ThreadSession, texts: Texts) -> Iterator[tuple[Turn, Exchange]]:
    """Yield the turns of a thread with their exchanges."""
    from chat.models import Turn
    from memory.models import Exchange
    from memory.text import content_hash

    parent, previous, topic = None, None, texts.topic()
    for position in range(TURNS):
        at = thread.created_at + timedelta(minutes=2 * position)
        message, answer = texts.message_and_answer(topic)
        turn = Turn(
            thread=thread, session=session, parent=parent, position=position, author=thread.owner, client_key=uuid.uuid4(),
            message=message, answer=answer, state=Turn.State.COMPLETE, model="fake", created_at=at, completed_at=at,
        )  # fmt: skip
        exchange = Exchange(
            space=thread.space, owner=thread.owner, thread_id=thread.id, session_id=session.id, turn_id=turn.id, previous=previous,
            user_message=message, assistant_message=answer, timestamp=at, source=Exchange.Source.CHAT,
            size=len(message) + len(answer), content_hash=content_hash(message, answer),
        )  # fmt: skip
        turn.exchange_id = exchange.id
        parent, previous = turn, exchange
        yield turn, exchange


if __name__ == "__main__":
    django.setup()
    print(json.dumps(fill(int(sys.argv[1]), int(sys.argv[2]))))
