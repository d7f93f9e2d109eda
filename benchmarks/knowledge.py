"""Measure extraction of statements, and recall with and without them.

    python -m benchmarks.knowledge [--exchanges 1000]

The 130 exchanges of the test suite, repeated under other names until there are as many as asked for. In place of the model, a
function takes the first sentence of each message as a statement, so the figures are the cost of everything but the model,
and the calls and tokens that a model would get. Recall: whether the expected exchange, or a statement that rests on it,
is among what is recalled, with the tokens of the prompt context.
"""

from __future__ import annotations

import json
import re
import resource
import statistics
import time
import uuid
from collections.abc import Sequence
from typing import Any

from benchmarks.command_line import command_parser
from benchmarks.figures import table
from benchmarks.retrieval import format_share
from benchmarks.temporary_store import temporary_store
from tests.questions.work import EXCHANGES, IN_OTHER_WORDS, NAMES_ONLY

_SOURCE = re.compile(r'<passage-\w+ source="(\d+)"[^>]*>\n(.*?)(?:\n\(Answer|\n</passage)', re.DOTALL)
_SENTENCE = re.compile(r"[^.!?。！？]{12,240}[.!?。！？]?")


class ExtractiveModel:
    """Takes the place of the model: each source gives the first sentence of its message; counts calls and tokens."""

    def __init__(self) -> None:
        self.calls = self.tokens = 0

    def ask(self, messages: Sequence[dict[str, Any]]) -> str:
        from memory.api import estimate_tokens

        statements = []
        for number, text in _SOURCE.findall(messages[-1]["content"]):
            found = _SENTENCE.search(text)
            if found and "?" not in found[0]:
                sources = [{"number": int(number), "quote": found[0].strip()}]
                statement = {"text": found[0].strip(), "kind": "fact", "topic": "Work", "sources": sources}
                statements.append(statement | {"updates": [], "contradicts": []})
        reply = json.dumps({"statements": statements, "repeated": []})
        self.calls += 1
        self.tokens += sum(estimate_tokens(str(message["content"])) for message in messages) + estimate_tokens(reply)
        return reply


def main() -> None:
    parser = command_parser("knowledge", __doc__)
    parser.add_argument("--exchanges", type=int, default=len(EXCHANGES))
    count = parser.parse_args().exchanges
    with temporary_store() as person:
        from memory import api
        from memory.spaces import access
        from tests.questions.store import store_exchanges

        keys = store_exchanges(person.pk)
        space = access.personal_space(person.pk)
        _store_more(space, person.pk, count - len(keys))
        readable = access.readable_space_ids(person.pk)
        before = [_measure_recall(keys, readable, questions) for questions in (IN_OTHER_WORDS, NAMES_ONLY)]
        model, started = ExtractiveModel(), time.perf_counter()
        clusters, added = extract_all(space, model)
        seconds = time.perf_counter() - started
        api.index_pending(limit=1_000_000)
        after = [_measure_recall(keys, readable, questions) for questions in (IN_OTHER_WORDS, NAMES_ONLY)]
        figures = (
            count,
            clusters,
            added,
            1000 * model.calls / count,
            1000 * model.tokens / count,
            1000 * seconds / count,
        )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    names = ("exchanges", "clusters", "statements", "calls / 1,000", "tokens / 1,000", "s / 1,000", "peak MiB")
    table(names, [(*figures, memory)])
    rows = [
        (name, *one, *other)
        for name, one, other in zip(("without a common word", "names and numbers"), before, after, strict=True)
    ]
    table(("questions", "recalled before", "tokens", "recalled after", "tokens"), rows)


def _store_more(space: Any, person_id: Any, count: int) -> None:
    from memory import api

    items = [
        api.NewExchange(
            space=space,
            owner_id=person_id,
            user_message=f"{EXCHANGES[n % len(EXCHANGES)].user} (Case {n})",
            assistant_message=EXCHANGES[n % len(EXCHANGES)].assistant,
            source="import",
        )
        for n in range(max(0, count))
    ]
    for start in range(0, len(items), 500):
        api.remember_many(items[start : start + 500])
    api.index_pending(limit=1_000_000)


def extract_all(space: Any, model: ExtractiveModel) -> tuple[int, int]:
    """Extract everything; return the numbers of clusters and of statements."""
    from chat.knowledge.extraction import extract
    from chat.knowledge.worker import join_small
    from memory import api

    clusters = added = 0
    while (batch := api.next_batch(space.pk)).clusters or batch.uninformative:
        api.mark_as_read(space, batch.uninformative)
        clusters += len(batch.clusters)
        for ids in join_small(batch.clusters):
            added += extract(space, ids, ask=model.ask, hold=lambda: None)
    return clusters, added


def _measure_recall(
    keys: dict[uuid.UUID, str], readable: frozenset[uuid.UUID], questions: Sequence[tuple[str, str]]
) -> tuple[str, float]:
    """Return the share of questions for which the exchange or a statement of it is recalled, and the median tokens."""
    from memory import api
    from memory.retrieval.prompt_context import build_prompt_context, estimate_tokens

    outcomes, tokens = [], []
    for question, key in questions:
        hits = api.recall([question], spaces=readable).results
        ids = [hit.exchange.id for hit in hits]
        supports = api.Support.objects.filter(statement_id__in=ids).values_list("exchange_id", flat=True)
        outcomes.append(key in {keys.get(id) for id in [*ids, *supports]})
        tokens.append(estimate_tokens(build_prompt_context(hits, max_tokens=2000)))
    return format_share(outcomes), float(statistics.median(tokens))


if __name__ == "__main__":
    main()
