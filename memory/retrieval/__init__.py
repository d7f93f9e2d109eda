"""The strategies, by name. A new one is a function `Query -> Ranking` and a line here, or an entry point of a package."""

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
    """The strategy called `name`. Raises InvalidInputError for one that is not there or cannot be loaded."""
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
    """The strategies there are, ours first; none of a package is loaded for it."""
    return [*STRATEGIES, *sorted(set(_entry_points()) - set(STRATEGIES))]


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}


@cache
def _load(entry: EntryPoint) -> Strategy:
    try:
        loaded: Strategy = entry.load()
    except Exception as error:  # whatever a third party's module raises while it is imported
        log.exception("the retrieval strategy %s could not be loaded", entry.name)
        raise InvalidInputError(
            _("The retrieval strategy %(name)s (%(module)s) cannot be loaded: %(error)s.")
            % {"name": entry.name, "module": entry.value, "error": f"{type(error).__name__}: {error}"}
        ) from error
    return loaded
