"""Explain to people why an exchange was found."""

from __future__ import annotations

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.lexical.analyser import analyse, separates_words
from memory.lexical.bm25 import QueryTerm, matching_terms
from memory.lexical.languages import certain_language
from memory.retrieval.candidates import Candidate, CandidatePool
from memory.retrieval.dates import DateRange
from memory.utils.formatting import format_list

# The explanation of a candidate for which nothing but its similarity speaks.
SIMILAR = gettext_lazy("Similar to your question")
# The same, for a text in another language than the question, by its code.
_SIMILAR_IN = {
    "en": gettext_lazy("Similar; in English"),
    "de": gettext_lazy("Similar; in German"),
    "fr": gettext_lazy("Similar; in French"),
    "es": gettext_lazy("Similar; in Spanish"),
    "ja": gettext_lazy("Similar; in Japanese"),
    "ko": gettext_lazy("Similar; in Korean"),
    "zh": gettext_lazy("Similar; in Chinese"),
    "th": gettext_lazy("Similar; in Thai"),
    "el": gettext_lazy("Similar; in Greek"),
    "he": gettext_lazy("Similar; in Hebrew"),
}
_MAX_WORDS = 3
# A term is mentioned if its weight is at least this share of the rarest term's weight.
_MIN_IDF_SHARE = 0.35


def explain(
    candidate: Candidate, pool: CandidatePool, text: str, *, period: DateRange | None = None, is_below: bool = False
) -> str:
    """Return why a candidate with this text was found: shared terms and a matching date, else that it is similar.

    A candidate that is not even similar was found next to another match.
    """
    if is_below:
        return _("Not similar enough to be recalled automatically")
    parts = [_describe_shared_terms(candidate, pool)]
    if period and period.start <= candidate.timestamp <= period.end:
        parts.append(_("From the date mentioned"))
    evidence = "; ".join(part for part in parts if part)
    if evidence:
        return evidence
    return _describe_similarity(pool.query.text, text) if "meaning" in candidate.ranks else _("Next to another match")


def _describe_similarity(question: str, text: str) -> str:
    asked, language = certain_language(question), certain_language(text)
    return str(_SIMILAR_IN[language] if asked and language and asked != language else SIMILAR)


def _describe_shared_terms(candidate: Candidate, pool: CandidatePool) -> str:
    query_terms = pool.lexical_query.terms
    shared = matching_terms(candidate.terms, query_terms)
    if not shared:
        return ""
    max_idf = max(term.idf for term in query_terms)
    strong = sorted((term for term in shared if term.idf >= _MIN_IDF_SHARE * max_idf), key=lambda term: -term.idf)
    words = list(dict.fromkeys(_shared_word(term, candidate.terms) for term in strong))[:_MAX_WORDS]
    if not words:
        return ""
    return _("Contains %(words)s") % {"words": format_list([_("“%(word)s”") % {"word": word} for word in words])}


def _shared_word(query_term: QueryTerm, terms: str) -> str:
    """Return the word of a query term that occurs in a text, given as terms separated by spaces.

    In a script without spaces, where a whole sentence is one word, return the longest part of it around the term that
    the text contains.
    """
    word, start = query_term.word, query_term.word.find(query_term.term)
    if separates_words(word[0]) or start < 0:
        return word

    def occurs(part: str) -> bool:
        return f" {' '.join(analyse(part))} " in f" {terms} "

    end = start + len(query_term.term)
    while end < len(word) and occurs(word[start : end + 1]):
        end += 1
    while start > 0 and occurs(word[start - 1 : end]):
        start -= 1
    return word[start:end]
