"""Recall for a turn: what of memory is relevant to a conversation, within a budget."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest

from django.conf import settings
from django.db import DatabaseError

from memory.errors import InvalidInputError
from memory.exchanges import feedback, supersessions
from memory.filters import Filter
from memory.retrieval import corrections, instruction_detection, prompt_context, what_happened
from memory.retrieval.by_date import BY_DATE
from memory.retrieval.dates import DateRange
from memory.retrieval.exchange_views import still_readable
from memory.retrieval.gate import is_follow_up
from memory.retrieval.instruction_detection import DetectedInstruction
from memory.retrieval.search import SearchOptions, SearchResults, build_query, note_of, rank_query
from memory.retrieval.sentence_vectors import embed_sentences
from memory.retrieval.subjects import order_by_subject
from memory.retrieval.types import Hit, Query, SubjectOrder
from memory.spaces.access import SpaceIds
from memory.text import clean_text

log = logging.getLogger(__name__)

# Number of excerpts for a broad question.
_MAX_EXCERPTS = 12
# The same for a period that is told as a whole: shorter ones, so that a busy day has room.
_MAX_EXCERPTS_OF_PERIOD = 30
# The note if the configured strategy or reranker cannot be used.
FAILED = "failed"
# The note of a message that asks what happened in a period in which nothing was remembered; otherwise it is BY_DATE.
NOTHING_THEN = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions(SearchOptions):
    """Options of a recall.

    `max_tokens` None stands for `context_max_tokens`. `detect_instruction` looks for a standing instruction in the newest
    message, and `detect_correction` tells whether it corrects what was answered. Hits of the space `preferred` come first.
    `get_last_visit` returns when the person was here before, for a message that asks what happened since. With a `period`,
    what happened in it is listed, whatever the messages are about, without what was said in the thread `except_thread`.
    """

    max_tokens: int | None = None
    detect_instruction: bool = False
    detect_correction: bool = False
    preferred: uuid.UUID | None = None
    get_last_visit: Callable[[], datetime | None] = field(default=lambda: None)
    period: DateRange | None = None
    except_thread: uuid.UUID | None = None


@dataclass(slots=True)
class _Outcome:
    """Findings of a recall besides its hits.

    The reason for a degraded result, the order of messages on one subject, the instruction in the message, and whether it
    is a correction.
    """

    note: str = ""
    subject_order: SubjectOrder = SubjectOrder.LATER_FIRST
    get_instruction: Callable[[], DetectedInstruction | None] = field(default=lambda: None)
    get_is_correction: Callable[[], bool] = field(default=lambda: False)


def recall(
    messages: Sequence[str],
    *,
    spaces: SpaceIds,
    exclude: frozenset[uuid.UUID] = frozenset(),
    conversation_length: int = 0,
    keep_query: bool = True,
    text_space: uuid.UUID | None = None,
    person_id: uuid.UUID | None = None,
    max_tokens: int | None = None,
    filters: Filter | None = None,
    detect_instruction: bool = False,
    detect_correction: bool = False,
    preferred: uuid.UUID | None = None,
    get_last_visit: Callable[[], datetime | None] = lambda: None,
    period: DateRange | None = None,
    except_thread: uuid.UUID | None = None,
    reader_id: uuid.UUID | None = None,
) -> SearchResults:
    """Return the hits for a conversation; `messages` are its last messages, newest last.

    The other arguments are those of `RecallOptions`, and `reader_id` is that of `search`. Hits pass the gate, number at
    most `context_results` and fit into `context_max_tokens`. If the index or the embedding model does not answer, only
    terms are searched and `note` is LEXICAL_ONLY; if the model may not receive the messages, it is NOT_EMBEDDED. A
    strategy or reranker that is unusable or fails gives no hits and FAILED.
    """
    options = RecallOptions(
        spaces=spaces,
        exclude=exclude,
        conversation_length=conversation_length,
        keep_query=keep_query,
        text_space=text_space,
        person_id=person_id,
        max_tokens=max_tokens,
        filters=filters,
        detect_instruction=detect_instruction,
        detect_correction=detect_correction,
        preferred=preferred,
        get_last_visit=get_last_visit,
        period=period,
        except_thread=except_thread,
    )
    outcome = _Outcome()
    try:
        found = tuple(iter_recall(messages, options, outcome))
    except InvalidInputError as error:
        log.warning("nothing could be recalled: %s", error)
        return SearchResults(note=FAILED)
    except DatabaseError:
        raise
    except Exception:
        # Any error, such as one of an installed strategy: an answer does not depend on what is recalled for it.
        log.exception("nothing could be recalled")
        return SearchResults(note=FAILED)
    hits = _in_order(found, outcome.subject_order, options)
    if reader_id is not None:
        hits = tuple(still_readable(hits, spaces=spaces, reader_id=reader_id))
    return SearchResults(
        hits,
        note=outcome.note,
        instruction=outcome.get_instruction(),
        is_correction=outcome.get_is_correction(),
    )


def _in_order(hits: Sequence[Hit], order: SubjectOrder, options: RecallOptions) -> tuple[Hit, ...]:
    """Order messages on one subject, or all of them, by date, according to the person's decisions.

    A message that supersedes another takes the place of the last hit if there is no room for more.
    """
    if not hits or options.person_id is None:
        return tuple(order_by_subject(hits, order, {}))
    decisions = supersessions.decisions_of(options.person_id, [hit.exchange.id for hit in hits])
    limit = max(len(hits), settings.CATO.vector_store.context_results)
    if decisions and options.filters is None and options.period is None:
        hits = corrections.add_superseding(hits, decisions, spaces=options.spaces, exclude=options.exclude)
    return tuple(order_by_subject(hits[:limit], order, decisions))


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
            excerpts = _MAX_EXCERPTS if options.period is None else _MAX_EXCERPTS_OF_PERIOD
            budget.widen(max(conf.context_results, excerpts))
        if budget.exceeds_share(result):
            postponed.append(result)
        elif budget.accept(result):
            yield result
        if budget.is_full:
            break
    # Exceed the share of one author or document only if no other hit passes the gate.
    yield from (result for result in postponed if budget.accept(result))


def _interleave(texts: list[str], options: RecallOptions, outcome: _Outcome) -> Iterator[Hit]:
    """Yield the hits that pass the gate, first those for the newest message alone.

    A follow-up is also searched joined with the previous messages, and both lists alternate.
    """
    if options.period is not None:
        irrelevant = feedback.feedback_of(options.person_id).irrelevant if options.person_id else frozenset()
        yield from _list_by_date(options.period, options.exclude | irrelevant, options, outcome)
        return
    query = _build_turn_query(texts, options)
    _detect(texts[-1], query, options, outcome)
    hits = _preferred_first(_hits_above_gate(query, outcome), options.preferred)
    if what_happened.is_asked(query.traits):
        period = what_happened.period_asked(query.text, query.now, options.get_last_visit)
        yield from _list_by_date(period, query.exclude, options, outcome)
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


def _detect(message: str, query: Query, options: RecallOptions, outcome: _Outcome) -> None:
    """Start to read what the message itself is, besides what it asks for."""
    is_wanted = options.detect_instruction or options.detect_correction
    sentences = embed_sentences(message, query) if is_wanted else None
    if sentences is not None and options.detect_instruction:
        outcome.get_instruction = lambda: instruction_detection.detect(sentences)
    if sentences is not None and options.detect_correction:
        outcome.get_is_correction = lambda: corrections.is_correction(sentences)


def _list_by_date(
    period: DateRange, exclude: frozenset[uuid.UUID], options: RecallOptions, outcome: _Outcome
) -> list[Hit]:
    hits = what_happened.hits_in(
        period,
        spaces=options.spaces,
        filters=options.filters,
        exclude=exclude,
        except_thread=options.except_thread,
    )
    outcome.note = BY_DATE if hits else NOTHING_THEN
    outcome.subject_order = SubjectOrder.CHRONOLOGICAL
    return hits


def _build_turn_query(texts: Sequence[str], options: RecallOptions, *, joined: bool = False) -> Query:
    """Return the query for the newest message, alone or `joined` with the previous ones."""
    query = build_query(
        texts if joined else texts[-1:],
        options,
        limit=3 * settings.CATO.vector_store.context_results,
        limits_sources=True,
    )
    return replace(query, has_context=len(texts) > 1)


def _hits_above_gate(query: Query, outcome: _Outcome) -> list[Hit]:
    ranking = rank_query(query, settings.CATO.vector_store.retrieval_strategy)
    outcome.note = outcome.note or note_of(query, ranking)
    outcome.subject_order = ranking.subject_order
    return [result for result in ranking.results if not result.is_below_gate]


def _preferred_first(hits: list[Hit], space_id: uuid.UUID | None) -> list[Hit]:
    """Put the hits of this space first. If the best hit is another one, it stays second, since it may be the answer."""
    preferred = [hit for hit in hits if hit.exchange.space_id == space_id]
    others = [hit for hit in hits if hit.exchange.space_id != space_id]
    if not preferred or hits[0] is preferred[0]:
        return preferred + others
    return [preferred[0], others[0], *preferred[1:], *others[1:]]
