"""The strategies, by name. A new one is a function `Query -> list[Result]` and a line here."""

from __future__ import annotations

from memory.errors import BadQuery
from memory.retrieval import cosine
from memory.retrieval.results import Strategy

STRATEGIES: dict[str, Strategy] = {
    "default": cosine.default,
    "dynamic": cosine.dynamic,
}


def strategy(name: str) -> Strategy:
    """The strategy called `name`. Raises BadQuery naming those there are."""
    if name not in STRATEGIES:
        raise BadQuery(f"There is no retrieval strategy {name}. There are: {', '.join(sorted(STRATEGIES))}.")
    return STRATEGIES[name]
