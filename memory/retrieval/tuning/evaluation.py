"""Measure how well each strategy finds stored exchanges with rephrased questions.

Questions are not stored, only one row of figures per strategy and run.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache as remembered
from statistics import median

from django.utils.translation import gettext_noop

from memory.embeddings import cache
from memory.errors import InvalidInputError, VectorStoreUnavailableError
from memory.lexical.candidates import build_lexical_query
from memory.models import Evaluation, Exchange, Space
from memory.retrieval.search import MAX_RESULTS, rank
from memory.retrieval.tuning.sampling import sample_exchanges
from memory.retrieval.types import ExchangeView, RankedHits
from memory.spaces import access as who
from memory.spaces.access import SpaceIds
from memory.text import excerpt

# Returns a question that the passage answers, or None.
Rephraser = Callable[[str], str | None]

WITHOUT_RAREST_WORDS = gettext_noop("the same words without the rarest")
_PASSAGE = 1500
_QUESTION = 300
_DROPPED = 1 / 3


@dataclass(frozen=True, slots=True)
class Probe:
    """A question, the texts of the exchange that answers it, and the spaces to search."""

    text: str
    exchange_id: uuid.UUID
    said: tuple[str, str]
    spaces: SpaceIds


def evaluate(
    *,
    strategies: Sequence[str],
    sample: int = 100,
    k: int = 5,
    spaces: SpaceIds | None = None,
    rephrase: Rephraser | None = None,
    rephrased_by: str = WITHOUT_RAREST_WORDS,
) -> list[Evaluation]:
    """Search for `sample` exchanges of `spaces` with each strategy, and save a row of figures for each.

    None for `spaces` samples all of them and searches for each as its owner. Without `rephrase`, the question is the
    beginning of the exchange without its rarest words. Raises InvalidInputError, also if there is nothing to search
    for, and VectorStoreUnavailableError if the index or the embedding model does not answer, because only lexical
    search would be measured.
    """
    if not 1 <= k <= MAX_RESULTS:
        raise InvalidInputError(f"Count among the first 1 to {MAX_RESULTS} results, not {k}.")
    probes = list(_probes(sample_exchanges(sample, spaces), spaces, rephrase or paraphrase_offline))
    if not probes:
        raise InvalidInputError("There is nothing to ask for yet: no exchange is in the index.")
    run = uuid.uuid4()
    _answers(probes[0], strategies[0], k)  # the first query of a process waits for the model and the index
    rows = [_measure(probes, strategy, k) for strategy in strategies]
    for row in rows:
        row.run, row.rephrased_by = run, rephrased_by[:255]
    return Evaluation.objects.bulk_create(rows)


def paraphrase_offline(text: str) -> str:
    """Return the beginning of `text` without its rarest third of words, at least one."""
    beginning = excerpt(text, _QUESTION)
    asked = build_lexical_query(beginning, Space.objects.values_list("pk", flat=True)).asked  # rarest first
    for rare in asked[: max(1, round(_DROPPED * len(asked)))]:
        beginning = re.sub(rf"(?<!\w){re.escape(rare.word)}(?!\w)", "", beginning, flags=re.IGNORECASE)
    return " ".join(beginning.split())


def _probes(exchanges: Iterable[Exchange], spaces: SpaceIds | None, rephrase: Rephraser) -> Iterable[Probe]:
    readable = remembered(who.readable_space_ids)
    for exchange in exchanges:
        said = (exchange.user_message, exchange.assistant_message)
        text = (rephrase("\n".join(filter(None, said))[:_PASSAGE]) or "").strip()
        if text:
            yield Probe(text, exchange.id, said, readable(exchange.owner_id) if spaces is None else spaces)


def _measure(probes: Sequence[Probe], strategy: str, k: int) -> Evaluation:
    found = empty = 0
    milliseconds = []
    for probe in probes:
        cache.clear_query_cache()  # each strategy embeds the question itself, as in use
        began = time.perf_counter()
        ranking = _answers(probe, strategy, k)
        milliseconds.append(1000 * (time.perf_counter() - began))
        found += any(_is(result.exchange, probe) for result in ranking.results[:k])
        empty += all(result.is_below_gate for result in ranking.results)
    return Evaluation(
        strategy=strategy,
        questions=len(probes),
        k=k,
        recall=found / len(probes),
        empty=empty / len(probes),
        median_ms=median(milliseconds),
    )


def _answers(probe: Probe, strategy: str, k: int) -> RankedHits:
    ranking = rank(probe.text, spaces=probe.spaces, limit=k, strategy_name=strategy)
    if ranking.is_lexical_only:
        raise VectorStoreUnavailableError(
            "The index or the embedding model does not answer; measured now, words alone would be."
        )
    return ranking


def _is(exchange: ExchangeView, probe: Probe) -> bool:
    """Return True if this is the exchange or has the same text, since duplicates are removed."""
    return exchange.id == probe.exchange_id or (exchange.user_message, exchange.assistant_message) == probe.said
