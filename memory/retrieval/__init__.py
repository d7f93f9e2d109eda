"""The strategies, by name. A new one is a function `Query -> Ranking` and a line here, or an entry point of a package."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from django.utils.translation import gettext as _

from memory.errors import InvalidInputError
from memory.retrieval import strategies
from memory.retrieval.results import Strategy

ENTRY_POINTS = "cato.retrieval_strategies"

STRATEGIES: dict[str, Strategy] = {
    "default": strategies.default,
    "dynamic": strategies.dynamic,
    "hybrid": strategies.hybrid,
    "temporal": strategies.temporal,
    "diverse": strategies.diverse,
}


def strategy(name: str) -> Strategy:
    """The strategy called `name`. Raises InvalidInputError naming those there are."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    plugged = _plugged_in()
    if name not in plugged:
        raise InvalidInputError(
            _("There is no retrieval strategy %(name)s. There are: %(known)s.")
            % {"name": name, "known": ", ".join(names())}
        )
    return plugged[name]


def names() -> list[str]:
    """The strategies there are, ours first."""
    return [*STRATEGIES, *sorted(set(_plugged_in()) - set(STRATEGIES))]


@cache
def _plugged_in() -> dict[str, Strategy]:
    return {entry.name: entry.load() for entry in entry_points(group=ENTRY_POINTS)}
