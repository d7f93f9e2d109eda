"""Choices of a model among all endpoints: what is offered, what a name means, and whether a space's text may go there."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db.models import Exists
from django.utils.translation import gettext as _

from chat.errors import DataPolicyError, InvalidMessageError
from chat.llm import endpoint as endpoints
from chat.llm.endpoint import ModelEndpoint
from chat.llm.model_list import MAX_NAME_LENGTH, ModelList, read_model_list, validate_model
from chat.llm.policy_texts import refusal_text
from chat.models import Endpoint, SpaceModel
from memory.api import Space, may_receive


def any_policy() -> Exists:
    """Return the condition that any endpoint may not receive everything, to be read with another row."""
    return Exists(Endpoint.objects.exclude(policy=Endpoint.Policy.ALL))


def any_space_model() -> Exists:
    """Return the condition that any space has a model of its own, to be read with another row."""
    return Exists(SpaceModel.objects.all())


def refusal(endpoint: ModelEndpoint, space: Space) -> str:
    """Return why this endpoint may not receive text of the space, "" if it may."""
    if may_receive(endpoint.policy, space):
        return ""
    return refusal_text(endpoint.label, space, is_removed=endpoint.is_removed)


def ensure_may_receive(person: Any, *, space: Space, choice: str) -> None:
    """Raise DataPolicyError if the endpoint of this choice may not receive text of the space.

    `person` is a row locked by `lock_person`, which says whether there is any policy: without one, no statement is needed.
    """
    chosen = endpoints.find(choice) if person.has_data_policies else None
    if chosen is not None and (reason := refusal(chosen.endpoint, space)):
        raise DataPolicyError(reason)


def model_of_new_thread(person: Any, space: Space) -> str:
    """Return the model of a new thread for which none was chosen: that of its space, or else the person's default.

    `person` is a row locked by `lock_person`, which says whether any space has a model.
    """
    return (space_model(space.id) if person.has_space_models else "") or str(person.default_model)


def space_model(space_id: uuid.UUID) -> str:
    """Return the model of new threads in this space, "" if it has none of its own."""
    return SpaceModel.objects.filter(space_id=space_id).values_list("model", flat=True).first() or ""


def set_space_model(space: Space, choice: str) -> None:
    """Set the model of new threads in a space; "" is the default of who writes. Raises InvalidMessageError."""
    if not choice.strip():
        SpaceModel.objects.filter(space=space).delete()
        return
    # The default of the first endpoint, "", would not be told from none.
    valid = validate_choice(choice, space=space) or choice.strip()
    SpaceModel.objects.update_or_create(space=space, defaults={"model": valid})


def validate_choice(choice: str, *, space: Space | None = None) -> str:
    """Return the choice to store for a thread: "" for the default model of the first endpoint. Raises InvalidMessageError.

    `space` is that of the thread, whose text the endpoint has to be allowed to receive; None: unknown.
    """
    choice = choice.strip()
    name, slash, model = choice.partition("/")
    further = endpoints.find_named(name) if slash and name else None
    endpoint = further or endpoints.current()
    if endpoint is None:
        raise InvalidMessageError(_("No model is connected."))
    if endpoint.is_removed:
        raise InvalidMessageError(_("%(name)s was removed. Choose another model.") % {"name": endpoint.name}, "/model")
    if space is not None and (reason := refusal(endpoint, space)):
        raise DataPolicyError(reason)
    if further is None:
        return validate_model(endpoint, choice)
    valid = endpoint.choice_of(validate_model(endpoint, model) or model.strip())
    if len(valid) > MAX_NAME_LENGTH:
        text = _("The name of a model has at most %(most)s characters.") % {"most": MAX_NAME_LENGTH}
        raise InvalidMessageError(text, "/model")
    return valid


def read_model_lists(among: Sequence[ModelEndpoint]) -> list[ModelList]:
    """Return the models of these endpoints, read side by side as by `read_model_list`."""
    if len(among) <= 1:
        return [read_model_list(endpoint) for endpoint in among]
    with ThreadPoolExecutor(min(len(among), 8), thread_name_prefix="models") as threads:
        return list(threads.map(read_model_list, among))


def offered_choices(among: Sequence[ModelEndpoint], lists: Sequence[ModelList]) -> list[str]:
    """Return what can be chosen among these endpoints.

    A model of the first endpoint whose name begins like a further endpoint is left out, since it would mean that one.
    """
    return [
        endpoint.choice_of(name)
        for endpoint, models in zip(among, lists, strict=True)
        for name in own_names(endpoint, models.names, among)
    ]


def own_names(endpoint: ModelEndpoint, names: Iterable[str], among: Iterable[ModelEndpoint]) -> list[str]:
    """Return the names of an endpoint's models, without those of the first that mean one of a further endpoint `among` them."""
    taken = set() if endpoint.name else {other.name for other in among if other.name}
    return [name for name in names if "/" not in name or name.partition("/")[0] not in taken]
