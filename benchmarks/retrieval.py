"""Measure the recall and the gate of each strategy on the questions of the test suite.

    python -m benchmarks.retrieval

130 exchanges of a small company's assistant in four languages, in a real database and a real Chroma server with local
embeddings. The first table has recall@5: without the gate for paraphrased questions and for questions that share only a
name, with the gate for follow-ups and changes of subject. The English paraphrases are separate, because the shipped
model is trained on English. The second table has the share of found exchanges that pass the gate, and the shares of
irrelevant messages that recall nothing.
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
# The first ENGLISH of IN_OTHER_WORDS ask in English about English exchanges.
ENGLISH = 28
Keys = dict[uuid.UUID, str]


def main() -> None:
    with temporary_store() as person:
        from memory.spaces import access
        from tests.questions.store import store_exchanges

        keys = store_exchanges(person.pk)
        readable = access.readable_space_ids(person.pk)
        recall_rows, gate_rows = [], []
        for strategy in STRATEGIES:
            configure_strategy(strategy)
            recall_rows.append((strategy, *measure_recall(keys, readable)))
            gate_rows.append((strategy, *measure_gate(keys, readable)))
    table(("strategy", "paraphrases, English", "others", "names", "follow-ups", "changes", "ms"), recall_rows)
    table(
        (
            "strategy",
            "names: pass",
            "paraphrases: pass",
            "small talk: nothing",
            "tasks",
            "near misses",
            "thanks after a topic",
        ),
        gate_rows,
    )


def configure_strategy(strategy: str) -> None:
    from django.conf import settings

    conf = settings.CATO.vector_store.model_copy(update={"retrieval_strategy": strategy})
    settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})


def measure_recall(keys: Keys, readable: frozenset[uuid.UUID]) -> list[str]:
    """Return recall@5 of each set, and the median milliseconds of a question."""
    from memory.retrieval.search import rank

    milliseconds: list[float] = []

    def found_keys(question: str) -> list[str]:
        started = time.perf_counter()
        ranking = rank(question, spaces=readable, limit=5)
        milliseconds.append(1000 * (time.perf_counter() - started))
        return [keys[result.exchange.id] for result in ranking.results]

    return [
        format_share(key in found_keys(q) for q, key in IN_OTHER_WORDS[:ENGLISH]),
        format_share(key in found_keys(q) for q, key in IN_OTHER_WORDS[ENGLISH:]),
        format_share(key in found_keys(q) for q, key in NAMES_ONLY),
        format_share(f.key in recalled(keys, readable, *f.before, f.asks) for f in FOLLOW_UPS),
        format_share(c.key in recalled(keys, readable, *c.before, c.asks) for c in CHANGES),
        f"{statistics.median(milliseconds):.0f}",
    ]


def measure_gate(keys: Keys, readable: frozenset[uuid.UUID]) -> list[str]:
    """Return the share of found exchanges that pass the gate, and the share of each message set that recalls nothing."""
    return [
        format_pass_share(keys, readable, NAMES_ONLY),
        format_pass_share(keys, readable, IN_OTHER_WORDS[:ENGLISH]),
        *(
            format_share(not recalled(keys, readable, text) for text in texts)
            for texts in (SMALL_TALK, TASKS, NEAR_MISSES)
        ),
        format_share(not recalled(keys, readable, *after.before, after.message) for after in AFTER_TOPIC),
    ]


def format_pass_share(keys: Keys, readable: frozenset[uuid.UUID], questions: Iterable[tuple[str, str]]) -> str:
    from memory.retrieval.search import rank

    found = [
        (question, key)
        for question, key in questions
        if key in [keys[result.exchange.id] for result in rank(question, spaces=readable, limit=5).results]
    ]
    return format_share(key in recalled(keys, readable, question) for question, key in found)


def recalled(keys: Keys, readable: frozenset[uuid.UUID], *messages: str) -> list[str]:
    """Return the keys of the exchanges that are recalled after these messages."""
    from memory import api

    return [keys[r.exchange.id] for r in api.recall(messages, spaces=readable).results]


def format_share(outcomes: Iterable[bool]) -> str:
    counted = list(outcomes)
    return f"{sum(counted) / len(counted):.2f}"


if __name__ == "__main__":
    main()
