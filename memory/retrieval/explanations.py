"""Explain to people why an exchange was found."""

from __future__ import annotations

from django.utils.translation import gettext as _

from memory.lexical.bm25 import matching_terms
from memory.retrieval.candidates import Candidate, CandidatePool
from memory.retrieval.dates import DateRange
from memory.utils.formatting import format_list

_MAX_WORDS = 3
# A term is mentioned if its weight is at least this share of the rarest term's weight.
_MIN_IDF_SHARE = 0.35


def explain(
    candidate: Candidate, pool: CandidatePool, *, period: DateRange | None = None, is_below: bool = False
) -> str:
    """Return one sentence about similarity, shared terms and matching date."""
    if is_below:
        return _("Not similar enough to be recalled automatically")
    parts = [part for part in (_describe_similarity(candidate), _describe_shared_terms(candidate, pool)) if part]
    if period and period.start <= candidate.timestamp <= period.end:
        parts.append(_("from the date you mentioned"))
    if not parts:
        parts = [_("next to another match")]
    text = ", ".join(parts)
    return text[0].upper() + text[1:]


def _describe_similarity(candidate: Candidate) -> str:
    rank = candidate.ranks.get("meaning")
    if rank is None:
        return ""
    if rank == 1:
        return _("best match")
    if rank <= 5:
        return _("very similar")
    return _("similar") if rank <= 30 else _("related")


def _describe_shared_terms(candidate: Candidate, pool: CandidatePool) -> str:
    query_terms = pool.lexical_query.terms
    shared = matching_terms(candidate.terms, query_terms)
    if not shared:
        return ""
    max_idf = max(term.idf for term in query_terms)
    strong = sorted((term for term in shared if term.idf >= _MIN_IDF_SHARE * max_idf), key=lambda term: -term.idf)
    words = list(dict.fromkeys(term.word for term in strong))[:_MAX_WORDS]
    if not words:
        return ""
    return _("contains %(words)s") % {"words": format_list([_("“%(word)s”") % {"word": word} for word in words])}
