"""Subcommands of benchmarks that run in a Django process next to a running Cato.

python -m benchmarks.in_process fill N      # until N exchanges are stored
python -m benchmarks.in_process recall N    # N recalls; prints one JSON object of milliseconds
python -m benchmarks.in_process threads N   # the exchanges become threads of N turns, each with three recalled passages
python -m benchmarks.in_process post N      # N long messages for the worker to embed
python -m benchmarks.in_process waiting     # prints how many exchanges wait to be embedded
python -m benchmarks.in_process grow N P    # N synthetic exchanges (benchmarks/synthetic_store.py), P accounts; prints questions
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import django
import numpy as np

from benchmarks.figures import percentile

if TYPE_CHECKING:
    from cato_web.accounts.models import User
    from memory.models import Space

P = ParamSpec("P")
R = TypeVar("R")

BATCH = 1000
WARM_UP = 5  # uncounted recalls that connect and load
CANDIDATES = 60  # as many as a recall requests from the index
# Enough words that all texts differ, few enough that many share some.
WORDS = [
    f"{a}{b}"
    for a in ("gar", "mel", "tor", "lin", "sav", "bor", "nik")
    for b in ("den", "ow", "ima", "et", "ust", "ay")
]


def fill(total: int) -> None:
    """Store exchanges with random unit vectors in the first person's personal space, without worker and model."""
    from django.utils import timezone

    from memory.index import generations, placement, store
    from memory.index.vectors import vector_ids
    from memory.lexical.indexing import index_terms
    from memory.models import EmbeddingJob, Exchange, Job
    from memory.text import content_hash

    if not total:
        return
    person, space = _person()
    generation = generations.active_generation()
    generations.check_dimension(generation, 384)
    placement.MAX_SHARED_SPACE = -1  # a dedicated collection
    collection = placement.get_collection(space, generation)
    dice, numbers = random.Random(total), np.random.default_rng(total)
    while (missing := total - Exchange.objects.count()) > 0:
        now = timezone.now()
        rows = []
        for _ in range(min(BATCH, missing)):
            message, answer = _text(dice, 25), _text(dice, 75)
            rows.append(
                Exchange(
                    space=space, owner=person, user_message=message, assistant_message=answer, timestamp=now,
                    source="import", size=len(message) + len(answer), content_hash=content_hash(message, answer),
                )
            )  # fmt: skip
        vectors = numbers.standard_normal((len(rows), 384), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        fields = {"said": now.timestamp(), "source": "import", "owner": str(person.pk), "space": str(space.pk)}
        Exchange.objects.bulk_create(rows)
        figures = {
            "generation": generation,
            "collection": collection,
            "state": Job.State.DONE,
            "version": 1,
            "parts": 1,
            "due_at": now,
        }
        index_terms(rows)
        EmbeddingJob.objects.bulk_create([EmbeddingJob(exchange=row, **figures) for row in rows])
        ids = [id for row in rows for id in vector_ids(row.id, 1, 1)]
        store.upsert(collection.name, ids, vectors, [fields] * len(rows))


def threads(turns_each: int) -> None:
    """Make threads of all exchanges of the first person, in the order in which they were stored."""
    from chat.models import Thread, ThreadSession, Turn
    from memory.api import batched
    from memory.models import Exchange, RecallLogEntry

    person, space = _person()
    for number, rows in enumerate(batched(Exchange.objects.order_by("timestamp", "id"), turns_each)):
        title, at = f"Thread {number} about {WORDS[number % len(WORDS)]}", rows[0].timestamp
        thread = Thread.objects.create(owner=person, space=space, title=title, last_message_at=at)
        session = ThreadSession.objects.create(thread=thread, started_by=person, started_at=at)
        turns: list[Turn] = []
        for row in rows:
            row.thread_id, row.session_id = thread.id, session.id
            turn = Turn(
                thread=thread, session=session, parent=turns[-1] if turns else None, position=len(turns), author=person,
                client_key=row.id, message=row.user_message, answer=row.assistant_message, state=Turn.State.COMPLETE,
                model="fake", exchange_id=row.id, completed_at=row.timestamp,
            )  # fmt: skip
            row.turn_id = turn.id
            turns.append(turn)
        Turn.objects.bulk_create(turns)
        Thread.objects.filter(id=thread.id).update(head=turns[-1])
        Exchange.objects.bulk_update(rows, ["thread_id", "session_id", "turn_id"])
        RecallLogEntry.objects.bulk_create(
            RecallLogEntry(
                turn_id=turn.id, exchange=rows[rank], rank=rank + 1, score=0.5, strategy="hybrid", reason="Close"
            )
            for turn in turns[3:]
            for rank in range(3)
        )


def recall(times: int) -> dict[str, float]:
    """Return median and 95th percentile of a recall and its stages in milliseconds, each with another question."""
    from memory import api
    from memory.index import generations, store

    _, space = _person()
    generation = generations.active_generation()
    embedder = generations.embedder_for(generation)
    dice = random.Random(times)
    embedding, searching, total = [], [], []
    index = generation.collections.filter(placements__space=space).first()
    for _ in range(times + WARM_UP):
        vector, took = _time_call(embedder.embed_query, _question(dice))
        embedding.append(took)
        if index is not None:
            _, took = _time_call(store.query, index.name, vector, CANDIDATES)
            searching.append(took)
        recalled, took = _time_call(api.recall, [_question(dice)], spaces=frozenset({space.id}), keep_query=False)
        assert not recalled.note, recalled.note
        total.append(took)
    parts = {"embedding": embedding, "vectors": searching, "total": total}
    return {
        f"{name} p{share}": percentile(values[WARM_UP:], share / 100)
        for name, values in parts.items()
        for share in (50, 95)
    }


def grow(exchanges: int, people: int) -> list[str]:
    """Fill the store for the first person and create other accounts; return questions about stored texts."""
    from benchmarks.synthetic_store import Texts, lay_out
    from benchmarks.synthetic_store import fill as fill_as_if_real
    from cato_web.accounts.models import User
    from cato_web.accounts.services import create_person

    person, _ = _person()
    layout, texts = lay_out(person), Texts(seed=7)
    assert fill_as_if_real(layout, texts, exchanges, seconds=3600)
    for number in range(User.objects.count(), people):
        create_person(name=f"Person {number}", email=f"person{number}@halden.example", password=None)
    questions = texts.questions()
    return [next(questions) for _ in range(400)]


def post(count: int) -> None:
    """Store messages of at least 2,000 characters, each different and with a short answer."""
    from memory import api

    person, space = _person()
    dice = random.Random(count)
    for start in range(0, count, BATCH):
        api.remember_many(
            [
                api.NewExchange(
                    space=space, owner_id=person.pk, user_message=_text(dice, 500)[:2500], assistant_message="Noted.",
                    source="chat",
                )
                for _ in range(min(BATCH, count - start))
            ]
        )  # fmt: skip


def _time_call(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> tuple[R, float]:
    started = time.perf_counter()
    answer = call(*args, **kwargs)
    return answer, 1000 * (time.perf_counter() - started)


def _person() -> tuple[User, Space]:
    from cato_web.accounts.models import User
    from memory.spaces import access

    person = User.objects.order_by("joined_at").first()
    assert person is not None
    return person, access.personal_space(person.pk)


def _question(dice: random.Random) -> str:
    return f"What did we say about {_text(dice, 7)}?"


def _text(dice: random.Random, words: int) -> str:
    return " ".join(dice.choices(WORDS, k=words))


if __name__ == "__main__":
    django.setup()
    if sys.argv[1] == "fill":
        fill(int(sys.argv[2]))
    elif sys.argv[1] == "threads":
        threads(int(sys.argv[2]))
    elif sys.argv[1] == "post":
        post(int(sys.argv[2]))
    elif sys.argv[1] == "waiting":
        from memory.api import count_queued

        print(count_queued())
    elif sys.argv[1] == "grow":
        print(json.dumps(grow(int(sys.argv[2]), int(sys.argv[3]))))
    else:
        print(json.dumps(recall(int(sys.argv[2]))))
