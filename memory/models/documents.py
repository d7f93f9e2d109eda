"""Documents, their versions, and the chunks of each version, whose texts are exchanges."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from memory.models.exchanges import Exchange
from memory.models.jobs import Job
from memory.models.spaces import Space

# Storage folder of the originals.
FOLDER = "documents"


class Document(models.Model):
    """A named file in a space; receiving it again creates its next version.

    An uploaded file is identified by its name, a file from a folder of this machine by its path. A forgotten document
    remains as a row without name, path and metadata, for its receipt.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    space = models.ForeignKey(Space, on_delete=models.PROTECT, related_name="+")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=255, blank=True)
    source = models.CharField(max_length=12, choices=Exchange.Source.choices)
    source_path = models.TextField(blank=True, help_text="absolute path of a file read from a folder of the server")
    metadata = models.JSONField(default=dict)
    live_version = models.ForeignKey(
        "DocumentVersion",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="the version whose chunks are searchable",
    )
    created_at = models.DateTimeField(auto_now_add=True)
    forgotten_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["space", "name"], condition=Q(forgotten_at=None), name="one_document_of_a_name"
            ),
            models.UniqueConstraint(
                fields=["space", "source_path"],
                condition=Q(forgotten_at=None) & ~Q(source_path=""),
                name="one_document_of_a_source_path",
            ),
        ]
        indexes = [models.Index(fields=["space", "-created_at"])]


def storage_path(version: models.Model, name: str) -> str:
    """Return a random storage path, so that an original is never stored under its own name."""
    return f"{FOLDER}/{uuid.uuid4().hex}"


class DocumentVersionQuerySet(models.QuerySet["DocumentVersion"]):
    """Versions by what has become of them."""

    def present(self) -> DocumentVersionQuerySet:
        """Filter for the versions that were neither deleted nor cancelled; those of deleted documents are deleted."""
        discarded = (DocumentVersion.Stage.CANCELLED, DocumentVersion.Stage.REMOVED)
        return self.filter(removed_at=None).exclude(stage__in=discarded)


class DocumentVersion(Job):
    """One state of a document's bytes, and its processing stage.

    The job covers extraction and chunking. Embedding the chunks is a separate job.
    """

    class Stage(models.TextChoices):
        RECEIVED = "received"
        READING = "reading"
        CHUNKING = "chunking"
        EMBEDDING = "embedding"
        READY = "ready"
        FAILED = "failed"
        CANCELLED = "cancelled"
        REPLACED = "replaced"
        REMOVED = "removed"

    # Stages that a worker still advances.
    UNDER_WAY = (Stage.RECEIVED, Stage.READING, Stage.CHUNKING, Stage.EMBEDDING)

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    stage = models.CharField(max_length=9, choices=Stage.choices, default=Stage.RECEIVED)
    original = models.FileField(upload_to=storage_path, max_length=200, blank=True)
    size = models.PositiveBigIntegerField(help_text="bytes")
    sha256 = models.CharField(max_length=64, blank=True, help_text="SHA-256 of the bytes")
    kind = models.CharField(max_length=20, blank=True)
    title = models.CharField(max_length=255, blank=True)
    uploaded_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    ready_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True, help_text="when its file and chunks were deleted")
    total_chunks = models.PositiveIntegerField(null=True, help_text="known after extraction")

    objects = DocumentVersionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["document", "number"], name="one_version_of_a_number")]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(state="pending"), name="version_due"),
            models.Index(fields=["stage"], name="version_stage"),
            models.Index(fields=["-ready_at"], name="version_ready"),
        ]


class Chunk(models.Model):
    """A part of a version: its location, and the exchange with its text, which several versions may share."""

    version = models.ForeignKey(DocumentVersion, on_delete=models.CASCADE, related_name="chunks")
    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="chunks")
    index = models.PositiveIntegerField()
    start = models.PositiveIntegerField(help_text="offset in the extracted text, in characters")
    end = models.PositiveIntegerField()
    separator = models.CharField(max_length=2, blank=True, help_text="white space before it, at most two characters")
    location = models.CharField(max_length=300, blank=True, help_text="page, slide, sheet or heading")
    page = models.PositiveIntegerField(null=True, help_text="number of the page, if the file has pages")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["version", "index"], name="one_chunk_at_a_place")]


class HiddenPassage(models.Model):
    """Text of a version that is invisible in the opened file. It is not an exchange, so it is never retrieved."""

    version = models.ForeignKey(DocumentVersion, on_delete=models.CASCADE, related_name="hidden_passages")
    start = models.PositiveIntegerField(help_text="offset in the extracted text, in characters")
    location = models.CharField(max_length=300, blank=True, help_text="page, slide, sheet or heading")
    text = models.TextField()
