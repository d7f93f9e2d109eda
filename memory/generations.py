"""Which embedding model serves, and building another beside it; an index never mixes models."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from memory import embeddings, signals
from memory.embeddings.protocol import Embedder
from memory.errors import WrongDimension
from memory.models import Embedding, Exchange, Generation, Index, Job, Space


@dataclass(frozen=True, slots=True)
class Models:
    """The embedding model in service, the configured one, and how much of the new index is built."""

    serving: str
    configured: str
    dimension: int | None
    built: int
    to_build: int

    @property
    def differ(self) -> bool:
        return self.serving != self.configured


def serving() -> Generation:
    """The generation that answers; made from the configured model the first time."""
    found = Generation.objects.filter(state=Generation.State.SERVING).first()
    if found is not None:
        return found
    provider, model = embeddings.identity(settings.CATO.vector_store)
    try:
        with transaction.atomic():
            return Generation.objects.create(provider=provider, model=model, state=Generation.State.SERVING)
    except IntegrityError:  # another process was first
        return Generation.objects.get(state=Generation.State.SERVING)


def live() -> list[Generation]:
    """The generations that new exchanges go into: the serving one, and one that is being built."""
    building = Generation.objects.filter(state=Generation.State.BUILDING)
    return [serving(), *building]


def embedder_of(generation: Generation) -> Embedder:
    """The embedding model this generation was made with."""
    return embeddings.configured(settings.CATO.vector_store, provider=generation.provider, model=generation.model)


def check_dimension(generation: Generation, dimension: int) -> None:
    """Hold the vectors' `dimension` against the generation's, which the first vectors set. Raises WrongDimension."""
    if generation.dimension is None:
        Generation.objects.filter(pk=generation.pk, dimension=None).update(dimension=dimension)
        generation.refresh_from_db()
    if generation.dimension != dimension:
        raise WrongDimension(
            f"{generation.model} answered with {dimension} numbers a vector; the index holds {generation.dimension}. "
            "Set vector_store.embedding_dimensions, or build a new index with reembed."
        )


def index_of(space: Space, generation: Generation) -> Index:
    """The index of this space in this generation; its row is made before anything is written to it."""
    name = f"{settings.CATO.vector_store.collection_name}-{space.id.hex}-{generation.pk}"
    return Index.objects.get_or_create(space=space, generation=generation, defaults={"collection": name})[0]


def models_in_use() -> Models:
    """The figures a banner, the stats page and `reembed` show."""
    now = serving()
    provider, model = embeddings.identity(settings.CATO.vector_store)
    building = Generation.objects.filter(state=Generation.State.BUILDING).first()
    rows = Embedding.objects.filter(generation=building) if building else Embedding.objects.none()
    return Models(
        serving=f"{now.provider}/{now.model}",
        configured=f"{provider}/{model}",
        dimension=now.dimension,
        built=rows.filter(state=Job.State.DONE).count(),
        to_build=rows.count(),
    )


def build_generation(batch: int = 1000) -> Generation:
    """Open the index of the configured model beside the serving one and queue every exchange for it.

    May be broken off and called again: it goes on where it was. A half-built index of a third model is dropped.
    """
    provider, model = embeddings.identity(settings.CATO.vector_store)
    building = Generation.objects.filter(state=Generation.State.BUILDING).first()
    if building is not None and (building.provider, building.model) != (provider, model):
        retire(building)
        building = None
    if building is None:
        building = Generation.objects.create(provider=provider, model=model, state=Generation.State.BUILDING)
    missing = Exchange.objects.filter(forgotten_at=None).exclude(embeddings__generation=building).order_by("id")
    while ids := list(missing.values_list("id", flat=True)[:batch]):
        now = timezone.now()
        Embedding.objects.bulk_create(
            [Embedding(exchange_id=i, generation=building, due_at=now) for i in ids], ignore_conflicts=True
        )
    return building


def switch_generation() -> bool:
    """Let the new index serve if every exchange is in it; the old one's collections are dropped. False: not yet."""
    building = Generation.objects.filter(state=Generation.State.BUILDING).first()
    if building is None or Embedding.objects.filter(generation=building).exclude(state=Job.State.DONE).exists():
        return False
    with transaction.atomic():
        old = Generation.objects.select_for_update().get(state=Generation.State.SERVING)
        Generation.objects.filter(pk=old.pk).update(state=Generation.State.RETIRED)
        Generation.objects.filter(pk=building.pk).update(state=Generation.State.SERVING)
    retire(old)
    signals.switched.send(sender=None)
    return True


def retire(generation: Generation) -> None:
    """Drop a generation's collections, then its rows; once begun it can be repeated until it is through."""
    from memory import store

    Generation.objects.filter(pk=generation.pk).update(state=Generation.State.RETIRED)
    for index in Index.objects.filter(generation=generation):
        store.drop(index.collection)
    Embedding.objects.filter(generation=generation).delete()
    generation.delete()
