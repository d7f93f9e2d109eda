"""The location of vectors, the model that made them, and the jobs that change them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from memory.models.exchanges import Exchange
from memory.models.jobs import Job
from memory.models.spaces import Space


class IndexGeneration(models.Model):
    """All collections of one embedding model; one generation is active, and another may be building."""

    class State(models.TextChoices):
        BUILDING = "building"
        ACTIVE = "serving"
        RETIRED = "retired"

    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=255)
    dimension = models.PositiveIntegerField(null=True, help_text="known after the first embedding")
    state = models.CharField(max_length=8, choices=State.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["state"], condition=Q(state="serving"), name="one_active_generation"),
            models.UniqueConstraint(fields=["state"], condition=Q(state="building"), name="one_building_generation"),
        ]


class EmbeddingPolicy(models.Model):
    """Which spaces' text a remote embedding provider may receive, as in `memory.spaces.data_policy`; at most one row."""

    kind = models.CharField(max_length=6)
    places = models.JSONField(default=list)


class Collection(models.Model):
    """A collection of vectors in one generation: shared by many small spaces, or dedicated to a large one."""

    generation = models.ForeignKey(IndexGeneration, on_delete=models.CASCADE, related_name="collections")
    name = models.CharField(max_length=200, unique=True)
    is_shared = models.BooleanField(help_text="holds the vectors of many small spaces")
    purge_needed_since = models.DateTimeField(
        null=True, help_text="since when its files may contain vectors of forgotten exchanges; null: none"
    )
    last_marked_at = models.DateTimeField(null=True, help_text="when it was last marked for purging")


class Placement(models.Model):
    """A collection that may have vectors of a space.

    New vectors are written to the collection of the current placement. The others are kept until their vectors have
    been moved there.
    """

    space = models.ForeignKey(Space, on_delete=models.CASCADE, related_name="placements")
    generation = models.ForeignKey(IndexGeneration, on_delete=models.CASCADE, related_name="placements")
    collection = models.ForeignKey(Collection, on_delete=models.CASCADE, related_name="placements")
    is_current = models.BooleanField(default=True)
    vector_count = models.PositiveIntegerField(default=0, help_text="vectors of the space when last counted")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["space", "collection"], name="one_placement_a_collection"),
            models.UniqueConstraint(
                fields=["space", "generation"], condition=Q(is_current=True), name="one_current_placement"
            ),
        ]
        indexes = [models.Index(fields=["collection"], condition=Q(is_current=False), name="former_placement")]


class EmbeddingJob(Job):
    """The vectors of one exchange in one generation: a pending job, or stored in `collection`."""

    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="embeddings")
    generation = models.ForeignKey(IndexGeneration, on_delete=models.CASCADE, related_name="embeddings")
    collection = models.ForeignKey(Collection, null=True, on_delete=models.PROTECT, related_name="embeddings")
    version = models.PositiveIntegerField(default=0, help_text="version of the exchange whose vectors are stored")
    parts = models.PositiveSmallIntegerField(default=0, help_text="number of stored vectors")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["exchange", "generation"], name="embedded_once_a_generation")]
        indexes = [
            # With the generation, because SQLite would use the index of that alone, which covers all rows.
            models.Index(fields=["generation", "due_at"], condition=Q(state="pending"), name="embedding_due"),
            models.Index(fields=["generation"], condition=Q(state="failed"), name="embedding_failed"),
        ]

    @classmethod
    def workable(cls) -> models.QuerySet[EmbeddingJob]:
        """Return the jobs that workers may do: those of a retired generation wait until it is restored."""
        if not settings.CATO.vector_store.enabled:
            return cls._default_manager.none()
        current = IndexGeneration.objects.exclude(state=IndexGeneration.State.RETIRED)
        return cls._default_manager.filter(generation__in=current)


class ErasureJob(Job):
    """The erasure of a forgotten exchange: removal and verification of vectors, cached embedding and text."""

    exchange = models.OneToOneField(Exchange, on_delete=models.CASCADE, related_name="erasure")

    class Meta:
        indexes = [models.Index(fields=["due_at"], condition=Q(state="pending"), name="erasure_due")]


class CachedEmbedding(models.Model):
    """The cached vectors of a text, kept while an exchange has that text."""

    content_hash = models.CharField(max_length=64)
    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=255)
    vectors = models.BinaryField(help_text="float32, parts x dimension")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["content_hash", "provider", "model"], name="cached_once_a_model")
        ]
