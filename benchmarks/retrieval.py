"""What each strategy finds on the suite's own questions, and what its gate keeps and silences.

    python -m benchmarks.retrieval

130 exchanges of a small company's assistant in four languages, in a real database and a real Chroma server with the
local embeddings. Recall@5, ungated: questions in entirely other words (English ones apart, since the shipped model
knows little else), questions that share a name only, follow-ups and changes of subject. Then how much the gate silences.
"""

from __future__ import annotations

import statistics
import time
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime

from benchmarks.figures import table
from benchmarks.own_store import own_store
from tests.questions.follow_ups import CHANGES, FOLLOW_UPS
from tests.questions.silence import AFTER_TOPIC, NEAR_MISSES, SMALL_TALK, TASKS
from tests.questions.work import EXCHANGES, IN_OTHER_WORDS, NAMES_ONLY

STRATEGIES = ("default", "dynamic", "hybrid", "temporal", "diverse")
ENGLISH = 28


def main() -> None:
    with own_store() as person:
        from django.conf import settings

        from memory import services, spaces
        from memory.services.search import ask

        own = spaces.own(person.pk)
        sessions = {said.session: uuid.uuid4() for said in EXCHANGES}
        kept = services.remember_many(
            [
                services.NewExchange(
                    space=own,
                    owner_id=person.pk,
                    user_message=said.user,
                    assistant_message=said.assistant,
                    source="import",
                    timestamp=datetime.fromisoformat(said.said).replace(tzinfo=UTC),
                    thread_id=sessions[said.session],
                    session_id=sessions[said.session],
                )
                for said in EXCHANGES
            ]
        )
        services.index_pending()
        keys = {row.id: said.key for row, said in zip(kept, EXCHANGES, strict=True)}
        readable = spaces.readable_by(person.pk)
        rows, gates = [], []
        for name in STRATEGIES:
            conf = settings.CATO.vector_store.model_copy(update={"retrieval_strategy": name})
            settings.CATO = settings.CATO.model_copy(update={"vector_store": conf})
            took: list[float] = []

            def found(question: str, took: list[float] = took) -> list[str]:
                begun = time.perf_counter()
                ranking = ask(question, spaces=readable, wanted=5)
                took.append(1000 * (time.perf_counter() - begun))
                return [keys[result.exchange.id] for result in ranking.results]

            def recalled(*messages: str) -> list[str]:
                return [keys[r.exchange.id] for r in services.recall(messages, spaces=readable).results]

            rows.append(
                (
                    name,
                    share(key in found(q) for q, key in IN_OTHER_WORDS[:ENGLISH]),
                    share(key in found(q) for q, key in IN_OTHER_WORDS[ENGLISH:]),
                    share(key in found(q) for q, key in NAMES_ONLY),
                    share(f.key in recalled(*f.before, f.asks) for f in FOLLOW_UPS),
                    share(c.key in recalled(*c.before, c.asks) for c in CHANGES),
                    f"{statistics.median(took):.0f}",
                )
            )
            gates.append(
                (
                    name,
                    share(key in recalled(q) for q, key in NAMES_ONLY),
                    *(share(not recalled(text) for text in texts) for texts in (SMALL_TALK, TASKS, NEAR_MISSES)),
                    share(not recalled(*after.before, after.message) for after in AFTER_TOPIC),
                )
            )
    table(("strategy", "other words, English", "others", "names", "follow-ups", "changes", "ms"), rows)
    table(("strategy", "names kept", "small talk silent", "tasks", "near misses", "thanks after a topic"), gates)


def share(outcomes: Iterable[bool]) -> str:
    counted = list(outcomes)
    return f"{sum(counted) / len(counted):.2f}"


if __name__ == "__main__":
    main()
