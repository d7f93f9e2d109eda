"""Create, build, activate and drop index generations. An index never mixes embedding models."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from memory import embeddings, jobs
from memory.embeddings.base import Embedder
from memory.errors import EmbeddingDimensionError, EmbeddingModelUnavailableError
from memory.models import CachedEmbedding, Collection, EmbeddingJob, Exchange, IndexGeneration, Job
from memory.utils.batching import iterate_by_pk
from memory.utils.remaining_time import estimate_remaining

log = logging.getLogger(__name__)

_PAGE_SIZE = 1000


@dataclass(frozen=True, slots=True)
class EmbeddingModelStatus:
    """The embedding model of the active index and the configured one, and whether they are installed."""

    active: str
    configured: str
    is_active_installed: bool
    is_configured_installed: bool

    @property
    def differ(self) -> bool:
        """Return True if the configured model is not the active one."""
        return self.active != self.configured


@dataclass(frozen=True, slots=True)
class ReindexProgress:
    """Numbers of exchanges of a generation that is being built, and the seconds that are left, None if unknown."""

    total: int
    waiting: int
    remaining: float | None


def active_generation() -> IndexGeneration:
    """Return the active generation; create it for the configured model if none exists."""
    found = active_generation_or_none()
    if found is not None:
        return found
    provider, model = embeddings.configured_model()
    try:
        with transaction.atomic():
            return IndexGeneration.objects.create(provider=provider, model=model, state=IndexGeneration.State.ACTIVE)
    except IntegrityError:  # another process was first
        return IndexGeneration.objects.get(state=IndexGeneration.State.ACTIVE)


def active_generation_or_none() -> IndexGeneration | None:
    """Return the active generation, or None if none has been created yet."""
    return IndexGeneration.objects.filter(state=IndexGeneration.State.ACTIVE).first()


def writable_generations() -> list[IndexGeneration]:
    """Return the generations to which new exchanges are added: the active one and any that is being built."""
    current = list(IndexGeneration.objects.exclude(state=IndexGeneration.State.RETIRED))
    is_active = any(generation.state == IndexGeneration.State.ACTIVE for generation in current)
    return current if is_active else [active_generation(), *current]


def embeddable_generations() -> list[IndexGeneration]:
    """Return the generations that are not retired and whose model is installed.

    The jobs of the others wait: the active generation is replaced (`replace_uninstalled_model`).
    """
    current = IndexGeneration.objects.exclude(state=IndexGeneration.State.RETIRED)
    return [row for row in current if embeddings.is_installed(row.provider, row.model)]


def embedder_for(generation: IndexGeneration) -> Embedder:
    """Return an embedder for the provider and model of this generation."""
    return embeddings.get_embedder(provider=generation.provider, model=generation.model)


def check_dimension(generation: IndexGeneration, dimension: int) -> None:
    """Raise EmbeddingDimensionError if `dimension` differs from that of the generation; the first call sets it."""
    if generation.dimension is None:
        IndexGeneration.objects.filter(pk=generation.pk, dimension=None).update(dimension=dimension)
        generation.refresh_from_db()
    if generation.dimension != dimension:
        sentence = _(
            "%(model)s returns vectors of %(found)s numbers; those of the index have %(held)s. "
            "Set vector_store.embedding_dimensions to %(held)s, or build a new index with `reembed --again`."
        )
        raise EmbeddingDimensionError(
            sentence % {"model": generation.model, "found": dimension, "held": generation.dimension}
        )


def embedding_model_status() -> EmbeddingModelStatus:
    """Return the active and the configured embedding model for the banner and `reembed`."""
    active = active_generation()
    provider, model = embeddings.configured_model()
    return EmbeddingModelStatus(
        active=f"{active.provider}/{active.model}",
        configured=f"{provider}/{model}",
        is_active_installed=embeddings.is_installed(active.provider, active.model),
        is_configured_installed=embeddings.is_installed(provider, model),
    )


def replace_uninstalled_model() -> None:
    """Start a generation for the configured model if that of the active generation is no longer installed."""
    active = active_generation_or_none()
    configured = embeddings.configured_model()
    if active is None or embeddings.is_installed(active.provider, active.model) or is_reindexing():
        return
    if embeddings.is_installed(*configured):
        log.warning("%s is not installed any more; the index is rebuilt with %s", active.model, configured[1])
        start_reindex()


def drop_uninstalled_generations() -> int:
    """Drop the retired generations whose model is no longer installed, once the active one has its model.

    Nothing can be added to them, so they cannot become active again. Return their number. Raises
    VectorStoreUnavailableError.
    """
    active = active_generation_or_none()
    if active is None or not embeddings.is_installed(active.provider, active.model):
        return 0
    retired = IndexGeneration.objects.filter(state=IndexGeneration.State.RETIRED)
    unusable = [row for row in retired if not embeddings.is_installed(row.provider, row.model)]
    for generation in unusable:
        drop_generation(generation)
    return len(unusable)


def start_reindex(*, again: bool = False) -> IndexGeneration:
    """Start a generation for the configured model next to the active one and queue every exchange for it.

    An interrupted call can be repeated and continues. An unfinished generation of another model or dimension is dropped. A
    retired generation of the configured model is reused; otherwise all retired generations are dropped. `again`: reuse
    neither a retired generation nor cached embeddings of this model. Raises EmbeddingError.
    """
    provider, model = embeddings.configured_model()
    _require_installed(provider, model)
    building = _building_generation()
    if building is not None and not _is_configured(building):
        drop_generation(building)
        building = None
    retired = IndexGeneration.objects.filter(state=IndexGeneration.State.RETIRED, provider=provider, model=model).last()
    if building is None and retired is not None and not again and _is_configured(retired):
        building = _restore(retired)
    if building is None:
        drop_retired_generations()
        if again:
            CachedEmbedding.objects.filter(provider=provider, model=model).delete()
        building = IndexGeneration.objects.create(provider=provider, model=model, state=IndexGeneration.State.BUILDING)
    enqueue_missing(building)
    return building


def is_reindexing() -> bool:
    """Return True if a generation of the configured model is being built."""
    building = _building_generation()
    identity = embeddings.configured_model()
    return building is not None and (building.provider, building.model) == identity


def reindex_progress() -> ReindexProgress | None:
    """Return how far the generation that is being built is, None if there is none."""
    building = _building_generation()
    if building is None:
        return None
    rows = EmbeddingJob.objects.filter(generation=building, exchange__forgotten_at=None)
    waiting = rows.filter(state=Job.State.PENDING).count()
    return ReindexProgress(rows.count(), waiting, estimate_remaining(("generation", building.pk), waiting))


def start_rollback() -> IndexGeneration | None:
    """Queue missing exchanges for the last retired generation so that it can become active again; return it.

    Return None if no generation is retired or being built. Any other generation that is being built is dropped. An
    interrupted call can be repeated; the restored generation is then the one being built. Raises
    EmbeddingModelUnavailableError.
    """
    building = _building_generation()
    retired = IndexGeneration.objects.filter(state=IndexGeneration.State.RETIRED).last()
    if retired is not None:
        _require_installed(retired.provider, retired.model)
        if building is not None:
            drop_generation(building)
        building = _restore(retired)
    if building is not None:
        enqueue_missing(building)
    return building


def activate_built_generation() -> bool:
    """Activate the built generation if it has every exchange, and retire the old one; return False if not ready.

    Exchanges that have not been queued for it yet are queued.
    """
    building = _building_generation()
    if building is None or not _is_embedded(building):
        return False
    if enqueue_missing(building):  # the call that started it was interrupted, or is still queueing
        jobs.wake_worker_on_commit("index_pending")
        return False
    with transaction.atomic():
        # A concurrent second call finds no generation in the building state.
        if not IndexGeneration.objects.select_for_update().filter(pk=building.pk, state=IndexGeneration.State.BUILDING):
            return False
        IndexGeneration.objects.filter(state=IndexGeneration.State.ACTIVE).update(state=IndexGeneration.State.RETIRED)
        IndexGeneration.objects.filter(pk=building.pk).update(state=IndexGeneration.State.ACTIVE)
    enqueue_missing(building)  # exchanges of transactions that began before the building
    return True


def enqueue_missing(generation: IndexGeneration) -> int:
    """Queue the exchanges without an embedding job in this generation; return their number."""
    queued = 0
    missing = Exchange.objects.filter(forgotten_at=None).exclude(embeddings__generation=generation)
    for page in iterate_by_pk(missing.values_list("pk"), _PAGE_SIZE):
        now = timezone.now()
        EmbeddingJob.objects.bulk_create(
            [EmbeddingJob(exchange_id=pk, generation=generation, due_at=now) for (pk,) in page], ignore_conflicts=True
        )
        queued += len(page)
    return queued


def drop_retired_generations() -> int:
    """Drop all retired generations; return their number."""
    generations = list(IndexGeneration.objects.filter(state=IndexGeneration.State.RETIRED))
    for generation in generations:
        drop_generation(generation)
    return len(generations)


def drop_generation(generation: IndexGeneration) -> None:
    """Drop the collections of a generation, then its rows; an interrupted call can be repeated.

    Chroma's files are removed by the supervisor. Raises VectorStoreUnavailableError and VectorStoreDisabledError.
    """
    from memory.index import store

    IndexGeneration.objects.filter(pk=generation.pk).update(state=IndexGeneration.State.RETIRED)
    for collection in Collection.objects.filter(generation=generation):
        store.drop(collection.name)
    store.request_file_cleanup()
    EmbeddingJob.objects.filter(generation=generation).delete()
    generation.delete()


def mark_purge_needed(collections: QuerySet[Collection]) -> None:
    """Mark these collections, whose files contain forgotten data until they are rebuilt; keep earlier marks."""
    now = timezone.now()
    with transaction.atomic():
        # Others can mark some of them at the same time, in another order.
        keys = list(collections.select_for_update().order_by("pk").values_list("pk", flat=True))
        Collection.objects.filter(pk__in=keys).update(
            purge_needed_since=Coalesce("purge_needed_since", now), last_marked_at=now
        )


def next_collection_name(collection: str, step: int = 1) -> str:
    """Return the name of the collection that replaces this one, or that it replaced (`step` -1)."""
    base, dot, number = collection.rpartition(".")
    if not dot or not number.isdecimal():
        base, number = collection, "1"
    following = int(number) + step
    return base if following <= 1 else f"{base}.{following}"


def _building_generation() -> IndexGeneration | None:
    return IndexGeneration.objects.filter(state=IndexGeneration.State.BUILDING).first()


def _is_configured(generation: IndexGeneration) -> bool:
    """Return True if the configured model can add vectors to the generation. Raises EmbeddingError."""
    if (generation.provider, generation.model) != embeddings.configured_model():
        return False
    return generation.dimension in (None, embedder_for(generation).dimension)


def _require_installed(provider: str, model: str) -> None:
    """Raise EmbeddingModelUnavailableError for a model with which no job would ever be done."""
    if not embeddings.is_installed(provider, model):
        raise EmbeddingModelUnavailableError(_("The embedding model %(model)s is not installed.") % {"model": model})


def _restore(retired: IndexGeneration) -> IndexGeneration:
    IndexGeneration.objects.filter(pk=retired.pk).update(state=IndexGeneration.State.BUILDING)
    jobs.requeue(EmbeddingJob.objects.filter(generation=retired, state=Job.State.FAILED))
    retired.refresh_from_db()
    return retired


def _is_embedded(generation: IndexGeneration) -> bool:
    rows = EmbeddingJob.objects.filter(generation=generation, exchange__forgotten_at=None)
    return not rows.exclude(state=Job.State.DONE).exists()
