"""Search on request, and what recall has in common with it: the query and its ranking."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from memory.errors import InvalidInputError, VectorStoreDisabledError
from memory.exchanges import feedback
from memory.filters import Filter
from memory.index import embedding_policy, generations
from memory.lexical.marks import contains_all_words
from memory.retrieval import get_strategy, probes
from memory.retrieval.exchange_views import still_readable
from memory.retrieval.instruction_detection import DetectedInstruction
from memory.retrieval.probes import MessageTraits
from memory.retrieval.query_embedding import embed_async
from memory.retrieval.types import Hit, Query, RankedHits
from memory.spaces.access import SpaceIds
from memory.text import clean_text

MAX_RESULTS = 100
# The notes of results for which only terms were searched: the index or the embedding model did not answer, or the
# embedding model may not receive the text.
LEXICAL_ONLY, NOT_EMBEDDED = "words", "unsent"
_NOTE_TEXTS = {
    LEXICAL_ONLY: gettext_noop("The search index cannot be used at the moment: found by keywords only."),
    NOT_EMBEDDED: gettext_noop("The embedding provider may not receive text of these spaces: found by keywords only."),
}


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Hits, best first, and what is special about them in `note`: "", LEXICAL_ONLY, or a note of `recall.py`.

    `instruction` is the standing instruction in the newest message, and `is_correction` tells whether it corrects what was
    answered, if recall was asked to detect them.
    """

    results: tuple[Hit, ...] = ()
    note: str = ""
    instruction: DetectedInstruction | None = None
    is_correction: bool = False

    @property
    def note_text(self) -> str:
        """Return the note for people, "" if all went well."""
        return _(_NOTE_TEXTS[self.note]) if self.note in _NOTE_TEXTS else ""

    @property
    def is_lexical_only(self) -> bool:
        """Return True if only terms were searched."""
        return self.note in (LEXICAL_ONLY, NOT_EMBEDDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """The part of memory that is searched, and the person who searches.

    `spaces` are the readable spaces; exchanges in `exclude` are never returned. The feedback of `person_id` is applied.
    `filters` is an additional condition on the hits. `keep_query` allows caching the query vector in this process.
    `text_space` is the space that the text belongs to, None for one that was typed for this search.
    `conversation_length` is a number of messages, 0 outside a conversation.
    """

    spaces: SpaceIds
    exclude: frozenset[uuid.UUID] = field(default=frozenset())
    conversation_length: int = 0
    keep_query: bool = True
    text_space: uuid.UUID | None = None
    person_id: uuid.UUID | None = None
    filters: Filter | None = None


def ensure_enabled() -> None:
    """Raise VectorStoreDisabledError while the vector store is disabled."""
    if not settings.CATO.vector_store.enabled:
        raise VectorStoreDisabledError(_("Nothing can be found: the vector store is disabled (vector_store.enabled)."))


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
    text_space: uuid.UUID | None = None,
    reader_id: uuid.UUID | None = None,
) -> SearchResults:
    """Return the `count` best hits for `text` in `spaces`; hits below the gate are included and marked.

    Exchanges in `exclude` are left out, and those that `person_id` marked as not relevant. With `limits_sources`, the
    share of one author or document is limited as in a recall. `text_space` is as in `SearchOptions`. With
    `reader_id`, hits in spaces that this person has lost meanwhile are left out; without it, the caller checks that.

    If the index does not answer, or the embedding model may not receive the text, only terms are searched, the note says
    so and no hit has a similarity. Otherwise only lexical hits that are not among the nearest have no similarity.
    Raises InvalidInputError and VectorStoreDisabledError.
    """
    text = clean_text(text).strip()
    if not text:
        raise InvalidInputError(_("Type what you are looking for."))
    if not 1 <= count <= MAX_RESULTS:
        raise InvalidInputError(
            _("Ask for 1 to %(most)s results, not %(count)s.") % {"most": MAX_RESULTS, "count": count}
        )
    ensure_enabled()
    if not spaces:
        return SearchResults()
    options = SearchOptions(spaces=spaces, filters=filters, exclude=exclude, person_id=person_id, text_space=text_space)
    # Near-duplicates among the best are dropped after the limit.
    limit = 3 * count if limits_sources else count
    query = build_query([text], options, limit=limit, limits_sources=limits_sources)
    ranking = rank_query(query, settings.CATO.vector_store.retrieval_strategy)
    ranked = ranking.results
    if min_similarity is not None:
        ranked = [r for r in ranked if r.similarity is not None and r.similarity >= min_similarity]
    if reader_id is not None:
        ranked = still_readable(ranked, spaces=spaces, reader_id=reader_id)
    return SearchResults(results=tuple(ranked[:count]), note=note_of(query, ranking))


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
    options = SearchOptions(spaces=spaces, filters=filters)
    query = build_query([text], options, limit=limit, now=now)
    return rank_query(query, strategy_name or settings.CATO.vector_store.retrieval_strategy)


def note_of(query: Query, ranking: RankedHits) -> str:
    """Return the note of results with this ranking."""
    if not query.is_embedded:
        return NOT_EMBEDDED
    return LEXICAL_ONLY if ranking.is_lexical_only else ""


def rank_query(query: Query, strategy_name: str) -> RankedHits:
    """Return the ranking of a strategy.

    A stale ranking is repeated once, because the versions that replaced its hits were not candidates yet.
    """
    strategy = get_strategy(strategy_name)
    ranking = strategy(query)
    return strategy(query) if ranking.is_stale else ranking


def build_query(
    messages: Sequence[str],
    options: SearchOptions,
    *,
    limit: int,
    now: datetime | None = None,
    limits_sources: bool = False,
) -> Query:
    """Return the query for these messages, newest last.

    Its vector is computed meanwhile, if the embedding model may receive the text.
    """
    active = generations.active_generation()
    person_feedback = feedback.feedback_of(options.person_id) if options.person_id else feedback.NO_FEEDBACK
    embedder = generations.embedder_for(active)
    text_spaces = options.spaces if options.text_space is None else frozenset({options.text_space})
    is_embedded = embedding_policy.may_receive_query(active.provider, text_spaces)
    get_vectors = embed_async(messages, embedder, keep=options.keep_query) if is_embedded else lambda: None

    @cache
    def get_traits() -> MessageTraits | None:
        vectors = get_vectors()
        return probes.read_traits(vectors.newest, active.provider, active.model) if vectors else None

    return Query(
        text="\n".join(messages),
        get_vector=lambda: vectors.combined if (vectors := get_vectors()) else None,
        get_traits=get_traits,
        get_log_probabilities=embedder.log_probabilities,
        is_embedded=is_embedded,
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
