"""Which embedding model serves, and building another beside it; an index never mixes models."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from memory import embeddings, jobs, signals
from memory.embeddings.base import Embedder
from memory.errors import EmbeddingDimensionError
from memory.models import CachedEmbedding, Embedding, Exchange, Generation, Index, Job, Space
from memory.utils.batching import iterate_by_pk

_PAGE = 1000


@dataclass(frozen=True, slots=True)
class EmbeddingModelStatus:
    """The embedding model of the active index, and the one that is configured."""

    serving: str
    configured: str

    @property
    def differ(self) -> bool:
        return self.serving != self.configured


def active_generation() -> Generation:
    """The generation that answers; made from the configured model the first time."""
    found = active_generation_or_none()
    if found is not None:
        return found
    provider, model = embeddings.configured_model(settings.CATO.vector_store)
    try:
        with transaction.atomic():
            return Generation.objects.create(provider=provider, model=model, state=Generation.State.SERVING)
    except IntegrityError:  # another process was first
        return Generation.objects.get(state=Generation.State.SERVING)


def active_generation_or_none() -> Generation | None:
    """The generation that answers, where there is one already."""
    return Generation.objects.filter(state=Generation.State.SERVING).first()


def writable_generations() -> list[Generation]:
    """The generations that new exchanges go into: the serving one, and one that is being built."""
    building = Generation.objects.filter(state=Generation.State.BUILDING)
    return [active_generation(), *building]


def embedder_for(generation: Generation) -> Embedder:
    """The embedding model this generation was made with."""
    return embeddings.get_embedder(settings.CATO.vector_store, provider=generation.provider, model=generation.model)


def check_dimension(generation: Generation, dimension: int) -> None:
    """Hold the vectors' `dimension` against the generation's, which the first vectors set. Raises EmbeddingDimensionError."""
    if generation.dimension is None:
        Generation.objects.filter(pk=generation.pk, dimension=None).update(dimension=dimension)
        generation.refresh_from_db()
    if generation.dimension != dimension:
        sentence = _(
            "%(model)s answered with %(found)s numbers a vector; the index holds %(held)s. "
            "Set vector_store.embedding_dimensions, or build a new index with reembed."
        )
        raise EmbeddingDimensionError(
            sentence % {"model": generation.model, "found": dimension, "held": generation.dimension}
        )


def get_collection(space: Space, generation: Generation) -> Index:
    """The index of this space in this generation; its row is made before anything is written to it."""
    name = f"{settings.CATO.vector_store.collection_name}-{space.id.hex}-{generation.pk}"
    return Index.objects.get_or_create(space=space, generation=generation, defaults={"collection": name})[0]


def embedding_model_status() -> EmbeddingModelStatus:
    """The active and the configured embedding model, as the banner and `reembed` compare them."""
    now = active_generation()
    provider, model = embeddings.configured_model(settings.CATO.vector_store)
    return EmbeddingModelStatus(
        serving=f"{now.provider}/{now.model}",
        configured=f"{provider}/{model}",
    )


def start_reindex(*, again: bool = False) -> Generation:
    """Open the index of the configured model beside the serving one and queue every exchange for it.

    May be broken off and called again: it goes on where it was. A half-built index of a third model is dropped; one
    that served before and was kept is used, others that were kept are dropped. `again`: nothing that was made before is
    used, every text is embedded anew.
    """
    provider, model = embeddings.configured_model(settings.CATO.vector_store)
    building = _building()
    if building is not None and (building.provider, building.model) != (provider, model):
        drop_generation(building)
        building = None
    kept = Generation.objects.filter(state=Generation.State.RETIRED, provider=provider, model=model).last()
    if building is None and kept is not None and not again:
        building = _revived(kept)
    if building is None:
        drop_retired()
        if again:
            CachedEmbedding.objects.filter(provider=provider, model=model).delete()
        building = Generation.objects.create(provider=provider, model=model, state=Generation.State.BUILDING)
    enqueue_missing(building)
    return building


def is_reindexing() -> bool:
    """Whether an index of the configured model is being built."""
    building = _building()
    identity = embeddings.configured_model(settings.CATO.vector_store)
    return building is not None and (building.provider, building.model) == identity


def start_rollback() -> Generation | None:
    """Let the index that served before catch up with what came since, to serve again; None where none was kept.

    What was being built is dropped. May be broken off and called again: then the one it brings back is being built.
    """
    building = _building()
    kept = Generation.objects.filter(state=Generation.State.RETIRED).last()
    if kept is not None:
        if building is not None:
            drop_generation(building)
        building = _revived(kept)
    if building is not None:
        enqueue_missing(building)
    return building


def activate_built_generation() -> bool:
    """Let the new index serve if every exchange is in it; the old one is kept, retired. False: not yet."""
    building = _building()
    if building is None or not _is_whole(building):
        return False
    with transaction.atomic():
        # Whoever comes second finds nothing that is still being built.
        if not Generation.objects.select_for_update().filter(pk=building.pk, state=Generation.State.BUILDING):
            return False
        Generation.objects.filter(state=Generation.State.SERVING).update(state=Generation.State.RETIRED)
        Generation.objects.filter(pk=building.pk).update(state=Generation.State.SERVING)
    enqueue_missing(building)  # what was kept by a transaction that began before the building did
    signals.switched.send(sender=None)
    return True


def enqueue_missing(generation: Generation) -> int:
    """Queue the exchanges that this generation has no row of; returns how many."""
    queued = 0
    missing = Exchange.objects.filter(forgotten_at=None).exclude(embeddings__generation=generation)
    for page in iterate_by_pk(missing.values_list("pk"), _PAGE):
        now = timezone.now()
        Embedding.objects.bulk_create(
            [Embedding(exchange_id=pk, generation=generation, due_at=now) for (pk,) in page], ignore_conflicts=True
        )
        queued += len(page)
    return queued


def drop_retired() -> int:
    """Drop every index that no longer serves; returns how many generations went."""
    retired = list(Generation.objects.filter(state=Generation.State.RETIRED))
    for generation in retired:
        drop_generation(generation)
    return len(retired)


def drop_generation(generation: Generation) -> None:
    """Drop a generation's collections, then its rows; once begun it can be repeated until it is through."""
    from memory.index import store

    Generation.objects.filter(pk=generation.pk).update(state=Generation.State.RETIRED)
    for index in Index.objects.filter(generation=generation):
        store.drop(index.collection)
    store.request_file_cleanup()
    Embedding.objects.filter(generation=generation).delete()
    generation.delete()


def mark_purge_needed(indexes: QuerySet[Index]) -> None:
    """Note that the files of these indexes hold what was forgotten, until they are made anew."""
    indexes.filter(soiled_at=None).update(soiled_at=timezone.now())


def next_collection_name(collection: str, step: int = 1) -> str:
    """The name of the collection that takes this one's place, or of that whose place it took (step -1)."""
    base, dot, number = collection.rpartition(".")
    if not dot or not number.isdecimal():
        base, number = collection, "1"
    following = int(number) + step
    return base if following <= 1 else f"{base}.{following}"


def _building() -> Generation | None:
    return Generation.objects.filter(state=Generation.State.BUILDING).first()


def _revived(kept: Generation) -> Generation:
    Generation.objects.filter(pk=kept.pk).update(state=Generation.State.BUILDING)
    jobs.requeue(Embedding.objects.filter(generation=kept, state=Job.State.FAILED))
    kept.refresh_from_db()
    return kept


def _is_whole(generation: Generation) -> bool:
    rows = Embedding.objects.filter(generation=generation, exchange__forgotten_at=None)
    if rows.exclude(state=Job.State.DONE).exists():
        return False
    return not Exchange.objects.filter(forgotten_at=None).exclude(embeddings__generation=generation).exists()
