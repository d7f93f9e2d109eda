"""How near to one another the words of a question stand in a text: words of one thought stand in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from memory.lexical.bm25 import Asked

# Terms; about a sentence. Windows of 4 to 16 differed by less than a hundredth.
WINDOW = 12


def together(asked: Sequence[Asked], terms: Sequence[str]) -> float:
    """The most of `asked` that stands within WINDOW of `terms`, as a share of the weight of all; 0 for a single term.

    `terms` are a text's, in their order.
    """
    weights = {ask.term: ask.idf for ask in asked}
    beginnings = tuple(ask.term for ask in asked if ask.is_prefix)
    best = 0.0
    recent: dict[str, int] = {}  # where each term of the question stood last
    for place, term in enumerate(terms):
        if term not in weights:
            if not (beginnings and term.startswith(beginnings)):
                continue
            term = next(beginning for beginning in beginnings if term.startswith(beginning))
        recent[term] = place
        near = [weights[other] for other, at in recent.items() if place - at <= WINDOW]
        if len(near) > 1:
            best = max(best, sum(near))
    possible = sum(weights.values())
    return best / possible if possible else 0.0
