"""Recall for a turn, and search on request."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import zip_longest

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.errors import InvalidInputError, VectorStoreDisabledError
from memory.exchanges import feedback, supersessions
from memory.filters import Filter
from memory.index import generations
from memory.lexical.marks import contains_all_words
from memory.retrieval import (
    get_strategy,
    instruction_detection,
    probes,
    prompt_context,
    query_embedding,
    what_happened,
)
from memory.retrieval.by_date import BY_DATE
from memory.retrieval.gate import is_follow_up
from memory.retrieval.instruction_detection import DetectedInstruction
from memory.retrieval.probes import MessageTraits
from memory.retrieval.subjects import order_by_subject
from memory.retrieval.types import Hit, Query, RankedHits, SubjectOrder
from memory.spaces.access import SpaceIds
from memory.text import clean_text

log = logging.getLogger(__name__)

MAX_RESULTS = 100
# Number of excerpts for a broad question.
_MAX_EXCERPTS = 12

# Reasons for a degraded result. LEXICAL_ONLY: the index or the embedding model did not answer, so only terms were searched.
# FAILED: the configured strategy or reranker cannot be used.
LEXICAL_ONLY = "words"
FAILED = "failed"
# Of a message that asks what happened in a period in which nothing was remembered; otherwise its note is BY_DATE.
NOTHING_THEN = "nothing"


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Hits, best first, and what is special about them in `note`: "", LEXICAL_ONLY, FAILED, BY_DATE or NOTHING_THEN.

    `instruction` is the standing instruction in the newest message, if recall was asked to detect one.
    """

    results: tuple[Hit, ...] = ()
    note: str = ""
    instruction: DetectedInstruction | None = None

    @property
    def is_lexical_only(self) -> bool:
        """Return True if the index or the embedding model did not answer."""
        return self.note == LEXICAL_ONLY


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """Options of a recall.

    `spaces` are the readable spaces; exchanges in `exclude` are never returned. The feedback of `person_id` is applied.
    `max_tokens` None stands for `context_max_tokens`. `filters` is an additional condition on the hits. `keep_query`
    allows caching the query vector in this process. `detect_instruction` looks for a standing instruction in the newest
    message. Hits of the space `preferred` come first. `get_last_visit` returns when the person was here before, for a
    message that asks what happened since.
    """

    spaces: SpaceIds
    exclude: frozenset[uuid.UUID] = field(default=frozenset())
    conversation_length: int = 0
    keep_query: bool = True
    person_id: uuid.UUID | None = None
    max_tokens: int | None = None
    filters: Filter | None = None
    detect_instruction: bool = False
    preferred: uuid.UUID | None = None
    get_last_visit: Callable[[], datetime | None] = field(default=lambda: None)


@dataclass(slots=True)
class _Outcome:
    """Findings of a recall besides its hits.

    The reason for a degraded result, the order of messages on one subject, and the instruction in the message.
    """

    note: str = ""
    subject_order: SubjectOrder = SubjectOrder.LATER_FIRST
    get_instruction: Callable[[], DetectedInstruction | None] = field(default=lambda: None)


def recall(
    messages: Sequence[str],
    *,
    spaces: SpaceIds,
    exclude: frozenset[uuid.UUID] = frozenset(),
    conversation_length: int = 0,
    keep_query: bool = True,
    person_id: uuid.UUID | None = None,
    max_tokens: int | None = None,
    filters: Filter | None = None,
    detect_instruction: bool = False,
    preferred: uuid.UUID | None = None,
    get_last_visit: Callable[[], datetime | None] = lambda: None,
) -> SearchResults:
    """Return the hits for a conversation; `messages` are its last messages, newest last.

    The other arguments are those of `RecallOptions`. Hits pass the gate, number at most `context_results` and fit into
    `context_max_tokens`. If the index or the embedding model does not answer, only terms are searched and `note` is
    LEXICAL_ONLY. An unusable strategy or reranker gives no hits and FAILED.
    """
    options = RecallOptions(
        spaces=spaces,
        exclude=exclude,
        conversation_length=conversation_length,
        keep_query=keep_query,
        person_id=person_id,
        max_tokens=max_tokens,
        filters=filters,
        detect_instruction=detect_instruction,
        preferred=preferred,
        get_last_visit=get_last_visit,
    )
    outcome = _Outcome()
    try:
        found = tuple(iter_recall(messages, options, outcome))
    except InvalidInputError as error:
        log.warning("nothing could be recalled: %s", error)
        return SearchResults(note=FAILED)
    results = _in_order(found, outcome.subject_order, person_id)
    return SearchResults(results, note=outcome.note, instruction=outcome.get_instruction())


def _in_order(results: tuple[Hit, ...], order: SubjectOrder, person_id: uuid.UUID | None) -> tuple[Hit, ...]:
    """Order messages on one subject, or all of them, by date, according to the person's decisions."""
    if len(results) < 2:
        return results
    ids = [result.exchange.id for result in results]
    decisions = supersessions.decisions_of(person_id, ids) if person_id else {}
    return tuple(order_by_subject(results, order, decisions))


def iter_recall(messages: Sequence[str], options: RecallOptions, outcome: _Outcome | None = None) -> Iterator[Hit]:
    """Yield the hits of `recall` one by one, best first, computing no more than is consumed; set `outcome`.

    For a follow-up, the newest message is searched alone first. Once its first hit is consumed, all messages are
    searched together, and hits of both searches alternate. At most two of five hits share an author or document while
    others pass the gate. For a broad question, up to 12 shorter passages fit.
    """
    conf = settings.CATO.vector_store
    texts = [clean_text(message) for message in messages[-conf.search_context_window :] if message.strip()]
    outcome = outcome or _Outcome()
    if not conf.enabled or not options.spaces or not texts:
        return
    budget = prompt_context.TokenBudget(
        limit=conf.context_results, max_tokens=options.max_tokens or conf.context_max_tokens
    )
    postponed: list[Hit] = []
    for result in _interleave(texts, options, outcome):
        if outcome.subject_order is SubjectOrder.CHRONOLOGICAL:
            budget.widen(max(conf.context_results, _MAX_EXCERPTS))
        if budget.exceeds_share(result):
            postponed.append(result)
        elif budget.accept(result):
            yield result
        if budget.is_full:
            break
    # Exceed the share of one author or document only if no other hit passes the gate.
    yield from (result for result in postponed if budget.accept(result))


def search(
    text: str,
    *,
    spaces: SpaceIds,
    count: int = 20,
    min_similarity: float | None = None,
    filters: Filter | None = None,
    exclude: frozenset[uuid.UUID] = frozenset(),
    person_id: uuid.UUID | None = None,
    limits_sources: bool = False,
) -> SearchResults:
    """Return the `count` best hits for `text` in `spaces`; hits below the gate are included and marked.

    Exchanges in `exclude` are left out, and those that `person_id` marked as not relevant. With `limits_sources`, the
    share of one author or document is limited as in a recall.

    If the index does not answer, only terms are searched, the note says so and no hit has a similarity. Otherwise only
    lexical hits that are not among the nearest have no similarity. Raises InvalidInputError and
    VectorStoreDisabledError.
    """
    text = clean_text(text).strip()
    if not text:
        raise InvalidInputError(_("Type what you are looking for."))
    if not 1 <= count <= MAX_RESULTS:
        raise InvalidInputError(
            _("Ask for 1 to %(most)s results, not %(count)s.") % {"most": MAX_RESULTS, "count": count}
        )
    if not settings.CATO.vector_store.enabled:
        raise VectorStoreDisabledError(_("Nothing can be found: the vector store is disabled (vector_store.enabled)."))
    if not spaces:
        return SearchResults()
    options = RecallOptions(spaces=spaces, filters=filters, exclude=exclude, person_id=person_id)
    # Near-duplicates among the best are dropped after the limit.
    limit = 3 * count if limits_sources else count
    query = _build_query([text], options, limit=limit, limits_sources=limits_sources)
    ranking = _rank(query, settings.CATO.vector_store.retrieval_strategy)
    ranked = ranking.results
    if min_similarity is not None:
        ranked = [r for r in ranked if r.similarity is not None and r.similarity >= min_similarity]
    return SearchResults(results=tuple(ranked[:count]), note=_note(ranking))


def is_relevant(hit: Hit, text: str) -> bool:
    """Return True for a hit that would be recalled for `text`, and for one with every word of it, which may be one word."""
    return not hit.is_below_gate or contains_all_words(
        f"{hit.exchange.user_message} {hit.exchange.assistant_message}", text
    )


def rank(
    text: str,
    *,
    spaces: SpaceIds,
    limit: int,
    now: datetime | None = None,
    strategy_name: str | None = None,
    filters: Filter | None = None,
) -> RankedHits:
    """Return the ungated ranking of a strategy for `text`, each hit marked; the default is the configured strategy."""
    options = RecallOptions(spaces=spaces, filters=filters)
    query = _build_query([text], options, limit=limit, now=now)
    return _rank(query, strategy_name or settings.CATO.vector_store.retrieval_strategy)


def _interleave(texts: list[str], options: RecallOptions, outcome: _Outcome) -> Iterator[Hit]:
    """Yield the hits that pass the gate, first those for the newest message alone.

    A follow-up is also searched joined with the previous messages, and both lists alternate.
    """
    query = _build_turn_query(texts, options)
    if options.detect_instruction:
        outcome.get_instruction = instruction_detection.detect_async(texts[-1], query)
    hits = _preferred_first(_hits_above_gate(query, outcome), options.preferred)
    if what_happened.is_asked(query.traits):
        yield from _list_by_date(query, options, outcome)
        return
    if len(texts) == 1 or not is_follow_up(query.traits):
        yield from hits
        return
    yield from hits[:1]
    seen = {result.exchange.id for result in hits[:1]}
    joined_hits = _preferred_first(
        _hits_above_gate(_build_turn_query(texts, options, joined=True), outcome), options.preferred
    )
    for pair in zip_longest(joined_hits, hits[1:]):
        for result in pair:
            if result is not None and result.exchange.id not in seen:
                seen.add(result.exchange.id)
                yield result


def _list_by_date(query: Query, options: RecallOptions, outcome: _Outcome) -> list[Hit]:
    period = what_happened.period_asked(query.text, query.now, options.get_last_visit)
    hits = what_happened.hits_in(period, spaces=options.spaces, filters=options.filters, exclude=query.exclude)
    outcome.note = BY_DATE if hits else NOTHING_THEN
    outcome.subject_order = SubjectOrder.CHRONOLOGICAL
    return hits


def _build_turn_query(texts: Sequence[str], options: RecallOptions, *, joined: bool = False) -> Query:
    """Return the query for the newest message, alone or `joined` with the previous ones."""
    query = _build_query(
        texts if joined else texts[-1:],
        options,
        limit=3 * settings.CATO.vector_store.context_results,
        limits_sources=True,
    )
    return replace(query, has_context=len(texts) > 1)


def _hits_above_gate(query: Query, outcome: _Outcome) -> list[Hit]:
    ranking = _rank(query, settings.CATO.vector_store.retrieval_strategy)
    outcome.note = outcome.note or _note(ranking)
    outcome.subject_order = ranking.subject_order
    return [result for result in ranking.results if not result.is_below_gate]


def _preferred_first(hits: list[Hit], space_id: uuid.UUID | None) -> list[Hit]:
    """Put the hits of this space first. If the best hit is another one, it stays second, since it may be the answer."""
    preferred = [hit for hit in hits if hit.exchange.space_id == space_id]
    others = [hit for hit in hits if hit.exchange.space_id != space_id]
    if not preferred or hits[0] is preferred[0]:
        return preferred + others
    return [preferred[0], others[0], *preferred[1:], *others[1:]]


def _note(ranking: RankedHits) -> str:
    return LEXICAL_ONLY if ranking.is_lexical_only else ""


def _rank(query: Query, strategy_name: str) -> RankedHits:
    """Return the strategy's ranking.

    A stale ranking is repeated once, because the versions that replaced its hits were not candidates yet.
    """
    strategy = get_strategy(strategy_name)
    ranking = strategy(query)
    return strategy(query) if ranking.is_stale else ranking


def _build_query(
    messages: Sequence[str],
    options: RecallOptions,
    *,
    limit: int,
    now: datetime | None = None,
    limits_sources: bool = False,
) -> Query:
    active = generations.active_generation()
    person_feedback = feedback.feedback_of(options.person_id) if options.person_id else feedback.NO_FEEDBACK
    embedder = generations.embedder_for(active)
    get_vectors = query_embedding.embed_async(messages, embedder, keep=options.keep_query)

    @cache
    def get_traits() -> MessageTraits | None:
        vectors = get_vectors()
        return probes.read_traits(vectors.newest, active.provider, active.model) if vectors else None

    return Query(
        text="\n".join(messages),
        get_vector=lambda: vectors.combined if (vectors := get_vectors()) else None,
        get_traits=get_traits,
        get_log_probabilities=embedder.log_probabilities,
        generation=active,
        spaces=options.spaces,
        limit=limit,
        now=now or timezone.now(),
        exclude=options.exclude | person_feedback.irrelevant,
        pinned=person_feedback.pinned,
        conversation_length=options.conversation_length,
        filters=options.filters,
        limits_sources=limits_sources,
    )
