"""Template rows of the model picker: the models of each endpoint, and where the endpoint is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from chat.llm.choices import own_names, refusal
from chat.llm.endpoint import ModelEndpoint
from chat.llm.model_list import ModelList
from memory.api import Space

MAX_SHOWN = 200
_MOST_WITHOUT_FILTER = 12


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model; `is_offered`: the endpoint lists it, or it is the default one, or no list is known.

    `choice` is what a thread stores of it. `is_current` is that of the thread, `is_selected` the option at which the keys
    begin.
    """

    name: str
    choice: str
    is_current: bool
    is_default: bool
    is_offered: bool
    can_select: bool
    is_selected: bool = False


@dataclass(frozen=True, slots=True)
class ModelPickerRow:
    """The models of an endpoint to choose from, and its state.

    `error` says why the list cannot be read, unless the endpoint does not respond since `failing_since`. `refusal` says why
    none of the models can be chosen in this thread. `further` are the rows of the further endpoints, without a query.
    """

    name: str
    location: str
    refusal: str
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
    further: Sequence[ModelPickerRow] = ()

    @property
    def groups(self) -> Sequence[ModelPickerRow]:
        """The rows of all endpoints if there are several."""
        return (self, *self.further) if self.further else ()

    @property
    def has_models(self) -> bool:
        """Return whether any model is shown."""
        return bool(self.models) or any(row.models for row in self.further)


def model_picker_row(
    endpoints: Sequence[ModelEndpoint],
    lists: Sequence[ModelList],
    chosen: str,
    query: str = "",
    *,
    space: Space,
) -> ModelPickerRow:
    """Return the row of the picker for the first of these endpoints, with those of the others.

    `chosen` is what the thread stores, "" for the default model of the first. `query` is a part of the names to list. If a
    list is cut off, the default model and the chosen one come first. `space` is that of the thread.
    """
    name = chosen.partition("/")[0]
    names = {endpoint.name for endpoint in endpoints if endpoint.name}
    owner = name if "/" in chosen and name in names else ""
    rows = [
        _endpoint_row(
            endpoint,
            models,
            chosen.removeprefix(f"{owner}/") if endpoint.name == owner else None,
            query,
            refusal(endpoint, space),
            names=own_names(endpoint, models.names, endpoints),
        )
        for endpoint, models in zip(endpoints, lists, strict=True)
    ]
    # The keys begin at one option of the whole list.
    shown = [model for row in rows for model in row.models]
    selected = next((model for model in shown if model.is_current), next(iter(shown), None))
    rows = [
        replace(row, models=[replace(model, is_selected=model is selected) for model in row.models]) for row in rows
    ]
    has_filter = any(row.has_filter for row in rows) or sum(len(row.models) for row in rows) > _MOST_WITHOUT_FILTER
    return replace(rows[0], further=rows[1:], has_filter=has_filter or (bool(query) and len(rows) > 1))


def _endpoint_row(
    endpoint: ModelEndpoint,
    models: ModelList,
    chosen: str | None,
    query: str,
    refused: str,
    *,
    names: Sequence[str],
) -> ModelPickerRow:
    """Return the row of one endpoint; `chosen` is the thread's model, "" the default one, None one of another endpoint.

    `names` are those of its models.
    """
    default = models.default_name(endpoint)
    current = None if chosen is None else chosen or default
    first = [name for name in dict.fromkeys((default, current)) if name and name not in names[:MAX_SHOWN]]
    known = list(dict.fromkeys([*first, *names]))
    matching = [name for name in known if query.lower() in name.lower()]

    def row(name: str) -> ModelRow:
        is_offered = not models.names or name in models.names or name == default
        can_select = is_offered and not models.error and not refused
        is_default = name == default and not endpoint.name
        return ModelRow(name, endpoint.choice_of(name), name == current, is_default, is_offered, can_select)

    return ModelPickerRow(
        name=endpoint.name,
        location=endpoint.location,
        refusal=refused,
        host=endpoint.host,
        is_local=endpoint.is_local,
        models=[row(name) for name in matching[:MAX_SHOWN]],
        error=models.error,
        failing_since=models.failing_since,
        is_listed=bool(models.names),
        is_cut=len(matching) > MAX_SHOWN,
        has_filter=len(known) > _MOST_WITHOUT_FILTER,
        query=query,
    )
