"""Measure what extraction costs beside the model in a store of a given size.

    python -m benchmarks.knowledge_sizes [--exchanges 1000]

The store is filled with synthetic exchanges (`benchmarks/synthetic_store.py`) and a statement for every fifty. All but 400
of them are marked as read. Then those 400 are read by a model that finds nothing: whether the space is due, their clusters,
and for each request the nearest statements, the prompt and the transaction. The page counts what is unread, too.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from django.utils import timezone

from benchmarks.command_line import command_parser
from benchmarks.figures import percentile, table
from benchmarks.temporary_store import temporary_store

if TYPE_CHECKING:
    from memory.models import Exchange, Space

UNREAD = 400
NOTHING = '{"statements": [], "repeated": []}'


def main() -> None:
    parser = command_parser("knowledge_sizes", __doc__)
    parser.add_argument("--exchanges", type=int, default=1000)
    count = parser.parse_args().exchanges
    with temporary_store() as person:
        from benchmarks.synthetic_store import Texts, fill, lay_out

        layout = lay_out(person)
        if not fill(layout, Texts(seed=1), count, seconds=3600):
            raise SystemExit("The store could not be filled within an hour.")
        _prepare(layout.own)
        row = (count, *_measure(layout.own))
    table(
        ("stored", "statements", "due, ms", "clusters of 400, ms", "request, ms", "p95", "s / 1,000", "peak MiB"), [row]
    )


def _prepare(space: Space) -> None:
    """Add statements, and leave the newest 400 exchanges unread."""
    from memory import api

    unread = list(api.unread_exchanges(space.pk))
    _add_statements(space, unread[: len(unread) // 50])
    api.unread_exchanges(space.pk).filter(timestamp__lt=unread[-UNREAD].timestamp).update(is_extracted=True)


def _add_statements(space: Space, sources: Sequence[Exchange]) -> None:
    from memory import api

    for start in range(0, len(sources), 500):
        some = sources[start : start + 500]
        supports = [api.NewSupport(source.pk, source.user_message[:100], source.version) for source in some]
        items = [
            api.NewStatement(text=source.user_message[:280], kind="fact", topic="Work", supports=[support])
            for source, support in zip(some, supports, strict=True)
        ]
        api.add_statements(space, items, read=supports)
        api.index_pending(limit=1_000_000)


def _measure(space: Space) -> tuple[int, float, float, float, float, float, float]:
    """Return the number of statements, the times of the steps in ms, s for 1,000 exchanges, and the peak in MiB."""
    from chat.knowledge.extraction import extract
    from chat.knowledge.worker import join_small
    from memory import api
    from memory.models import Statement

    started = time.perf_counter()
    due = _milliseconds(lambda: api.has_unread_exchanges(space.pk, timezone.now()))
    batch = api.next_batch(space.pk)
    api.mark_as_read(space, batch.uninformative)
    clustered = 1000 * (time.perf_counter() - started) - due
    requests = [
        _milliseconds(partial(extract, space, ids, ask=lambda _messages: NOTHING, hold=lambda: None))
        for ids in join_small(batch.clusters)
    ]
    assert not api.unread_exchanges(space.pk).exists()
    seconds = (time.perf_counter() - started) * 1000 / UNREAD
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        Statement.objects.count(),
        due,
        clustered,
        percentile(requests, 0.5),
        percentile(requests, 0.95),
        seconds,
        peak,
    )


def _milliseconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return 1000 * (time.perf_counter() - started)


if __name__ == "__main__":
    main()
