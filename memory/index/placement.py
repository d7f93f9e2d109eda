"""The collection that has the vectors of a space: shared by small spaces, dedicated to a large one.

A collection in use costs the Chroma server 2.7 MB and four open files, so small spaces share collections. Each vector
has its space as a filter field. A space that grows too large, or the largest of a full collection, gets another
placement. The worker then moves its vectors, and searches query both collections meanwhile.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Max, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce

from memory import jobs
from memory.models import Collection, EmbeddingJob, IndexGeneration, Job, Placement, Space
from memory.spaces.access import team_space

# Vectors of a shared collection. Chroma visits all of them for a filter that few match, and a purge copies all of them:
# see the figures in docs/decisions/0008-collections-and-spaces.md.
CAPACITY = 2000
# Vectors of a space in a shared collection. With more, a move would take longer than a few seconds.
MAX_SHARED_SPACE = 1000


def get_collection(space: Space, generation: IndexGeneration) -> Collection:
    """Return the collection for new vectors of this space; place the space first if necessary.

    Only rows are created: the worker creates the collection in the vector store with its first vectors.
    """
    placements = Placement.objects.filter(space=space, generation=generation, is_current=True)
    current = placements.select_related("collection").first() or _place(space, generation)
    return current.collection


def lock_placed_spaces(collection: Collection, space_ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Return those of the spaces whose new vectors belong into this collection.

    Until the end of the transaction they are neither moved nor is their placement removed.
    """
    placements = Placement.objects.filter(collection=collection, space__in=list(space_ids), is_current=True)
    return set(placements.select_for_update(no_key=True).order_by("pk").values_list("space_id", flat=True))


def count_vectors(collection: Collection, space_ids: Iterable[uuid.UUID]) -> None:
    """Count the vectors of these spaces again, if the collection is shared."""
    if not collection.is_shared:
        return
    for space_id in space_ids:
        placements = Placement.objects.filter(collection=collection, space=space_id, is_current=True)
        placements.update(vector_count=_count(space_id, collection.generation_id))


def rebalance(collection: Collection) -> None:
    """Move the largest spaces out of a shared collection that has too many vectors, or too many of one space."""
    if not collection.is_shared:
        return
    current = Placement.objects.filter(collection=collection, is_current=True)
    counts = current.aggregate(total=Sum("vector_count"), largest=Max("vector_count"))
    if (counts["total"] or 0) > CAPACITY or (counts["largest"] or 0) > MAX_SHARED_SPACE:
        _place_elsewhere(collection)
        vacate_former_collections()


def vacate_former_collections() -> None:
    """Queue the vectors that are still in former collections of their space; remove the placements without any.

    Jobs that a worker is doing finish first and are queued by the next call, so that no job has two workers.
    """
    # The jobs of a retired generation wait until it is restored.
    retired = IndexGeneration.State.RETIRED
    for placement in Placement.objects.filter(is_current=False).exclude(generation__state=retired):
        if jobs.requeue(_jobs_in(placement).filter(state=Job.State.DONE)):
            jobs.wake_worker_on_commit("index_pending")
        else:
            _remove_if_vacated(placement)


@transaction.atomic
def _place(space: Space, generation: IndexGeneration) -> Placement:
    _lock(generation.pk)
    current = Placement.objects.filter(space=space, generation=generation, is_current=True).first()
    if current is not None:  # another worker was first
        return current
    count = _count(space.pk, generation.pk)
    collection = _choose_collection(generation.pk, count)
    return Placement.objects.create(space=space, generation=generation, collection=collection, vector_count=count)


@transaction.atomic
def _place_elsewhere(collection: Collection) -> None:
    """Give the largest spaces new placements until neither limit is exceeded."""
    _lock(collection.generation_id)
    placements = list(Placement.objects.filter(collection=collection, is_current=True).order_by("-vector_count", "pk"))
    total = sum(placement.vector_count for placement in placements)
    for placement in placements:
        if placement.vector_count <= MAX_SHARED_SPACE and total <= CAPACITY:
            return
        target = _choose_collection(collection.generation_id, placement.vector_count, other_than=collection)
        Placement.objects.filter(pk=placement.pk).update(is_current=False)
        Placement.objects.update_or_create(
            space_id=placement.space_id,
            collection=target,
            defaults={
                "generation_id": collection.generation_id,
                "is_current": True,
                "vector_count": placement.vector_count,
            },
        )
        total -= placement.vector_count


@transaction.atomic
def _remove_if_vacated(placement: Placement) -> None:
    # The lock makes a worker wait that is about to write this collection to a job.
    locked = Placement.objects.select_for_update().filter(pk=placement.pk, is_current=False)
    if locked.first() is not None and not _jobs_in(placement).exists():
        Placement.objects.filter(pk=placement.pk).delete()


def _choose_collection(generation_id: int, count: int, *, other_than: Collection | None = None) -> Collection:
    """Return the fullest shared collection with room for `count` vectors, or a new collection."""
    is_shared = count <= MAX_SHARED_SPACE
    if is_shared:
        total = Coalesce(Sum("placements__vector_count", filter=Q(placements__is_current=True)), 0)
        shared = Collection.objects.filter(generation=generation_id, is_shared=True).annotate(total=total)
        if other_than is not None:
            shared = shared.exclude(pk=other_than.pk)
        fullest = shared.filter(total__lte=CAPACITY - max(count, 1)).order_by("-total", "pk").first()
        if fullest is not None:
            return fullest
    return Collection.objects.create(generation_id=generation_id, name=_new_name(), is_shared=is_shared)


def _new_name() -> str:
    """Return a name that shows to which installation the collection belongs.

    Several installations may share a server. The team space identifies an installation: each has exactly one, and a
    restored backup has it again.
    """
    return f"{settings.CATO.vector_store.collection_name}-{team_space().pk.hex}-{secrets.token_hex(8)}"


def _count(space_id: uuid.UUID, generation_id: int) -> int:
    """Return the number of vectors of the space; stop above MAX_SHARED_SPACE.

    An exchange that was never indexed counts with the vectors of an ordinary one: those of the whole and of each message.
    A space is therefore placed well before an import or a new generation is indexed, and does not have to move.
    """
    expected = Case(
        When(parts__gt=0, then=F("parts")), When(exchange__assistant_message="", then=Value(1)), default=Value(3)
    )
    rows = EmbeddingJob.objects.filter(
        generation=generation_id, exchange__space=space_id, exchange__forgotten_at=None
    ).annotate(expected=expected)
    return sum(rows.values_list("expected", flat=True)[: MAX_SHARED_SPACE + 1])


def _jobs_in(placement: Placement) -> QuerySet[EmbeddingJob]:
    return EmbeddingJob.objects.filter(collection=placement.collection_id, exchange__space=placement.space_id)


def _lock(generation_id: int) -> None:
    """Let one worker at a time place spaces of the generation, without delaying new exchanges."""
    IndexGeneration.objects.select_for_update(no_key=True).get(pk=generation_id)
