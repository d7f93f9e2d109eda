"""Registry of the retrieval strategies by name.

Add a strategy as a function `Query -> RankedHits` with an entry in `STRATEGIES`, or as a package's entry point.
"""

from __future__ import annotations

import logging
from functools import cache
from importlib.metadata import EntryPoint, entry_points

from django.utils.translation import gettext as _

from memory.errors import InvalidInputError
from memory.retrieval import strategies
from memory.retrieval.types import Strategy

log = logging.getLogger(__name__)

ENTRY_POINTS = "cato.retrieval_strategies"

STRATEGIES: dict[str, Strategy] = {
    "default": strategies.default,
    "dynamic": strategies.dynamic,
    "hybrid": strategies.hybrid,
    "temporal": strategies.temporal,
    "diverse": strategies.diverse,
}


def get_strategy(name: str) -> Strategy:
    """Return the strategy called `name`. Raises InvalidInputError if it is unknown or cannot be loaded."""
    if name in STRATEGIES:
        return STRATEGIES[name]
    entry = _entry_points().get(name)
    if entry is None:
        raise InvalidInputError(
            _("There is no retrieval strategy %(name)s. There are: %(known)s.")
            % {"name": name, "known": ", ".join(strategy_names())}
        )
    return _load(entry)


def strategy_names() -> list[str]:
    """Return the names of all strategies, built-in ones first, without loading any package's entry point."""
    return [*STRATEGIES, *sorted(set(_entry_points()) - set(STRATEGIES))]


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


@cache
def _load(entry: EntryPoint) -> Strategy:
    try:
        loaded: Strategy = entry.load()
    except Exception as error:  # a third-party module can raise anything on import
        log.exception("the retrieval strategy %s could not be loaded", entry.name)
        raise InvalidInputError(
            _("The retrieval strategy %(name)s (%(module)s) cannot be loaded: %(error)s.")
            % {"name": entry.name, "module": entry.value, "error": f"{type(error).__name__}: {error}"}
        ) from error
    return loaded
