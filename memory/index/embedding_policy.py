"""Which spaces' text a remote embedding provider may receive. All other text is not embedded, and found by keywords only.

Vectors that exist already stay in use, since searching them sends nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.utils.translation import gettext as _

from memory import jobs
from memory.embeddings import remote_host
from memory.errors import EmbeddingError
from memory.index import generations
from memory.models import EmbeddingJob, EmbeddingPolicy, Space
from memory.spaces.access import SpaceIds
from memory.spaces.data_policy import DataPolicy, permitted_spaces, personal_among, validate_places


def embedding_policy_of(provider: str) -> DataPolicy:
    """Return what this provider may receive: everything if it is local or nobody has set a policy."""
    row = None if provider == "local" else EmbeddingPolicy.objects.first()
    return DataPolicy() if row is None else DataPolicy(row.kind, frozenset(row.places))


@transaction.atomic
def set_embedding_policy(kind: str, places: Iterable[str]) -> None:
    """Set what a remote provider may receive, and let the worker decide again on what has no vectors.

    Raises InvalidInputError.
    """
    chosen = validate_places(places) if kind == DataPolicy.LISTED else []
    EmbeddingPolicy.objects.update_or_create(pk=1, defaults={"kind": kind, "places": chosen})
    # Jobs that are claimed are repeated, too: their worker may have read the former policy.
    jobs.repeat(EmbeddingJob.objects.filter(parts=0, exchange__forgotten_at=None))
    jobs.wake_worker_on_commit("index_pending")


def embeddable_spaces(provider: str, spaces: Iterable[Space]) -> SpaceIds:
    """Return the ids of those of `spaces` whose text this provider may receive."""
    spaces = list(spaces)
    ids = frozenset(space.id for space in spaces)
    return permitted_spaces(embedding_policy_of(provider), ids, personal=personal_among(spaces))


def may_receive_query(provider: str, spaces: SpaceIds) -> bool:
    """Return whether this provider may receive a text to search with.

    `spaces` is the space that the text belongs to or, if it was typed for this search only, all that are searched.
    """
    if embedding_policy_of(provider).kind == DataPolicy.ALL:
        return True
    return bool(embeddable_spaces(provider, Space.objects.filter(id__in=spaces)))


def ensure_embeddable(space: Space, *, provider: str | None = None) -> None:
    """Raise EmbeddingError if the provider, by default that of the active index, may not receive text of this space."""
    if not embeddable_spaces(provider or generations.active_generation().provider, [space]):
        sentence = _("An administrator does not allow sending this text to %(host)s, which computes the embeddings.")
        raise EmbeddingError(sentence % {"host": remote_host()}, permanent=True)
