"""Template rows of the model picker: the endpoint's models, and where the endpoint is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from chat.llm.endpoint import ModelEndpoint
from chat.llm.model_list import ModelList

MAX_SHOWN = 200
_MOST_WITHOUT_FILTER = 12


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model; `is_offered`: the endpoint lists it, or it is the default one, or no list is known.

    `is_current` is that of the thread, `is_selected` the option at which the keys begin.
    """

    name: str
    is_current: bool
    is_default: bool
    is_offered: bool
    can_select: bool
    is_selected: bool


@dataclass(frozen=True, slots=True)
class ModelPickerRow:
    """The models to choose from, and the state of their endpoint.

    `error` says why the list cannot be read, unless the endpoint does not respond since `failing_since`.
    """

    host: str
    is_local: bool
    models: Sequence[ModelRow]
    error: str
    failing_since: datetime | None
    is_listed: bool
    is_cut: bool
    has_filter: bool
    query: str = ""
    limit: int = MAX_SHOWN


def model_picker_row(endpoint: ModelEndpoint, models: ModelList, chosen: str, query: str = "") -> ModelPickerRow:
    """Return the row of the picker; `chosen` is the thread's model, "" for the default one.

    `query` is a part of the names to list. If the list is cut off, the default model and the chosen one come first.
    """
    default = models.default_name(endpoint)
    current = chosen or default
    first = [name for name in dict.fromkeys((default, current)) if name and name not in models.names[:MAX_SHOWN]]
    known = list(dict.fromkeys([*first, *models.names]))
    matching = [name for name in known if query.lower() in name.lower()]
    names = matching[:MAX_SHOWN]
    selected = current if current in names else next(iter(names), "")

    def row(name: str) -> ModelRow:
        is_offered = not models.names or name in models.names or name == default
        can_select = is_offered and not models.error
        return ModelRow(name, name == current, name == default, is_offered, can_select, name == selected)

    return ModelPickerRow(
        host=endpoint.host,
        is_local=endpoint.is_local,
        models=[row(name) for name in names],
        error=models.error,
        failing_since=models.failing_since,
        is_listed=bool(models.names),
        is_cut=len(matching) > MAX_SHOWN,
        has_filter=len(known) > _MOST_WITHOUT_FILTER,
        query=query,
    )
