"""Measure how well each strategy finds stored exchanges with rephrased questions.

Questions are not stored, only one row of figures per strategy and run.
"""

from __future__ import annotations

import functools
import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from django.utils.translation import gettext_noop

from memory.embeddings import cache
from memory.errors import InvalidInputError, VectorStoreUnavailableError
from memory.lexical.candidates import build_lexical_query
from memory.models import Evaluation, Exchange, Space
from memory.retrieval.search import MAX_RESULTS, rank
from memory.retrieval.tuning.sampling import sample_exchanges
from memory.retrieval.types import ExchangeView, RankedHits
from memory.spaces import access
from memory.spaces.access import SpaceIds
from memory.text import excerpt

# Returns a question that the passage answers, or None.
Rephraser = Callable[[str], str | None]

WITHOUT_RAREST_WORDS = gettext_noop("the same words without the rarest")
# Characters of an exchange that are rephrased, and of the question that is made of it.
_MAX_PASSAGE_CHARS = 1500
_MAX_QUESTION_CHARS = 300
# Share of the query terms that are removed.
_DROPPED_SHARE = 1 / 3


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the texts of the exchange that answers it, and the spaces to search."""

    text: str
    exchange_id: uuid.UUID
    messages: tuple[str, str]
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
    questions = list(_questions(sample_exchanges(sample, spaces), spaces, rephrase or paraphrase_offline))
    if not questions:
        raise InvalidInputError("There is nothing to search for yet: no exchange is in the index.")
    run = uuid.uuid4()
    _search(questions[0], strategies[0], k)  # warm up: the first query of a process loads the model and connects
    rows = [_measure(questions, strategy, k) for strategy in strategies]
    for row in rows:
        row.run, row.rephrased_by = run, rephrased_by[:255]
    return Evaluation.objects.bulk_create(rows)


def paraphrase_offline(text: str) -> str:
    """Return the beginning of `text` without its rarest third of words, at least one."""
    question = excerpt(text, _MAX_QUESTION_CHARS)
    query_terms = build_lexical_query(question, Space.objects.values_list("pk", flat=True)).terms  # rarest first
    for query_term in query_terms[: max(1, round(_DROPPED_SHARE * len(query_terms)))]:
        question = re.sub(rf"(?<!\w){re.escape(query_term.word)}(?!\w)", "", question, flags=re.IGNORECASE)
    return " ".join(question.split())


def _questions(exchanges: Iterable[Exchange], spaces: SpaceIds | None, rephrase: Rephraser) -> Iterable[Question]:
    readable_of = functools.cache(access.readable_space_ids)
    for exchange in exchanges:
        messages = (exchange.user_message, exchange.assistant_message)
        text = (rephrase("\n".join(filter(None, messages))[:_MAX_PASSAGE_CHARS]) or "").strip()
        if text:
            yield Question(text, exchange.id, messages, readable_of(exchange.owner_id) if spaces is None else spaces)


def _measure(questions: Sequence[Question], strategy: str, k: int) -> Evaluation:
    found = empty = 0
    milliseconds = []
    for question in questions:
        cache.clear_query_cache()  # each strategy embeds the question itself, as in use
        began = time.perf_counter()
        ranking = _search(question, strategy, k)
        milliseconds.append(1000 * (time.perf_counter() - began))
        found += any(_is_answer(result.exchange, question) for result in ranking.results[:k])
        empty += all(result.is_below_gate for result in ranking.results)
    return Evaluation(
        strategy=strategy,
        questions=len(questions),
        k=k,
        recall=found / len(questions),
        empty=empty / len(questions),
        median_ms=median(milliseconds),
    )


def _search(question: Question, strategy: str, k: int) -> RankedHits:
    ranking = rank(question.text, spaces=question.spaces, limit=k, strategy_name=strategy)
    if ranking.is_lexical_only:
        raise VectorStoreUnavailableError(
            "The vector store or the embedding model does not answer, so only lexical search would be measured. "
            "Try again when both answer."
        )
    return ranking


def _is_answer(exchange: ExchangeView, question: Question) -> bool:
    """Return True if this exchange, or one with the same text, is the answer. Search removes duplicates."""
    return (
        exchange.id == question.exchange_id or (exchange.user_message, exchange.assistant_message) == question.messages
    )
