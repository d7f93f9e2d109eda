"""Recall and gate of each strategy on the suite's own questions.

    python -m benchmarks.retrieval

130 exchanges of a small company's assistant in four languages, in a real database and a real Chroma server with local
embeddings. Recall@5, ungated: paraphrased questions (English ones separately, since the shipped model knows little
else), questions that share only a name, follow-ups and changes of subject. Then how many found exchanges pass the gate,
and how many irrelevant messages recall nothing.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Iterable

from benchmarks.figures import table
from benchmarks.temporary_store import temporary_store
from tests.questions.follow_ups import CHANGES, FOLLOW_UPS
from tests.questions.no_recall import AFTER_TOPIC, NEAR_MISSES, SMALL_TALK, TASKS
from tests.questions.work import IN_OTHER_WORDS, NAMES_ONLY

STRATEGIES = ("default", "dynamic", "hybrid", "temporal", "diverse")
# This many of IN_OTHER_WORDS ask in English about English.
ENGLISH = 28
Keys = dict[uuid.UUID, str]


def main() -> None:
    with temporary_store() as person:
        from memory.spaces import access
        from tests.questions.store import store_exchanges

        keys = store_exchanges(person.pk)
        readable = access.readable_space_ids(person.pk)
        found, passed = [], []
        for strategy in STRATEGIES:
            use(strategy)
            found.append((strategy, *measure_recall(keys, readable)))
            passed.append((strategy, *measure_gate(keys, readable)))
    table(("strategy", "other words, English", "others", "names", "follow-ups", "changes", "ms"), found)
    table(
        (
            "strategy",
            "names kept",
            "other words kept",
            "small talk silent",
            "tasks",
            "near misses",
            "thanks after a topic",
        ),
        passed,
    )


def use(strategy: str) -> None:
    from django.conf import settings

    conf = settings.CATO.vector_store.model_copy(update={"retrieval_strategy": strategy})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})


def measure_recall(keys: Keys, readable: frozenset[uuid.UUID]) -> list[str]:
    """Return recall@5 of each set, and the median milliseconds of a question."""
    from memory.retrieval.search import rank

    took: list[float] = []

    def found(question: str) -> list[str]:
        started = time.perf_counter()
        ranking = rank(question, spaces=readable, limit=5)
        took.append(1000 * (time.perf_counter() - started))
        return [keys[result.exchange.id] for result in ranking.results]

    return [
        share(key in found(q) for q, key in IN_OTHER_WORDS[:ENGLISH]),
        share(key in found(q) for q, key in IN_OTHER_WORDS[ENGLISH:]),
        share(key in found(q) for q, key in NAMES_ONLY),
        share(f.key in recalled(keys, readable, *f.before, f.asks) for f in FOLLOW_UPS),
        share(c.key in recalled(keys, readable, *c.before, c.asks) for c in CHANGES),
        f"{statistics.median(took):.0f}",
    ]


def measure_gate(keys: Keys, readable: frozenset[uuid.UUID]) -> list[str]:
    """Return the share of found exchanges that pass the gate, and the share of each message set that recalls nothing."""
    return [
        pass_share(keys, readable, NAMES_ONLY),
        pass_share(keys, readable, IN_OTHER_WORDS[:ENGLISH]),
        *(share(not recalled(keys, readable, text) for text in texts) for texts in (SMALL_TALK, TASKS, NEAR_MISSES)),
        share(not recalled(keys, readable, *after.before, after.message) for after in AFTER_TOPIC),
    ]


def pass_share(keys: Keys, readable: frozenset[uuid.UUID], questions: Iterable[tuple[str, str]]) -> str:
    from memory.retrieval.search import rank

    found = [
        (question, key)
        for question, key in questions
        if key in [keys[result.exchange.id] for result in rank(question, spaces=readable, limit=5).results]
    ]
    return share(key in recalled(keys, readable, question) for question, key in found)


def recalled(keys: Keys, readable: frozenset[uuid.UUID], *messages: str) -> list[str]:
    """Return the keys of the exchanges that a chat would get."""
    from memory import api

    return [keys[r.exchange.id] for r in api.recall(messages, spaces=readable).results]


def share(outcomes: Iterable[bool]) -> str:
    counted = list(outcomes)
    return f"{sum(counted) / len(counted):.2f}"


if __name__ == "__main__":
    main()
