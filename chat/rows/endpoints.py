"""Template rows of the administrators' pages of model endpoints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext as _

from chat.llm.endpoint import ModelEndpoint
from memory.api import DataPolicy, Space, embedding_policy_of, remote_host


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """An endpoint, what it may receive, and what is asked instead of it. The first one has no `name`."""

    name: str
    host: str
    base_url: str
    location: str
    policy_text: str
    fallback_text: str
    url: str


@dataclass(frozen=True, slots=True)
class EmbeddingRow:
    """The provider that computes the embeddings, and what it may receive."""

    host: str
    policy_text: str


def embedding_row() -> EmbeddingRow | None:
    """Return the row of the remote embedding provider, None for the local model."""
    conf = settings.CATO.vector_store
    host = remote_host()
    return (
        EmbeddingRow(host, _policy_text(embedding_policy_of(conf.embedding_provider), _shared_spaces()))
        if host
        else None
    )


def endpoint_rows(endpoints: Iterable[ModelEndpoint]) -> list[EndpointRow]:
    """Return the rows of these endpoints."""
    spaces = _shared_spaces()
    return [
        EndpointRow(
            name=one.name,
            host=one.host,
            base_url=one.base_url,
            location=one.location,
            policy_text=_policy_text(one.policy, spaces),
            fallback_text=_fallback_text(one),
            url=reverse("change_model_endpoint", args=[one.name]) if one.name else reverse("first_model_endpoint"),
        )
        for one in endpoints
    ]


def _shared_spaces() -> dict[str, str]:
    """Return the names of the shared spaces by their ids as text."""
    return {str(space.id): space.display_name for space in Space.objects.exclude(kind=Space.Kind.PERSONAL)}


def _policy_text(policy: DataPolicy, spaces: dict[str, str]) -> str:
    if policy.kind == DataPolicy.ALL:
        return _("May receive text of all spaces.")
    names = sorted(spaces[id] for id in policy.places if id in spaces)
    if DataPolicy.PERSONAL in policy.places:
        names = [_("Personal threads"), *names]
    if policy.kind != DataPolicy.LISTED or not names:
        return _("May receive text of no space.")
    return _("May receive text of: %(names)s.") % {"names": ", ".join(names)}


def _fallback_text(endpoint: ModelEndpoint) -> str:
    if endpoint.fallback is None:
        return ""
    name = endpoint.fallback or _("the first endpoint")
    return _("If it does not answer: %(name)s.") % {"name": name}
