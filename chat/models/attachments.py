"""Files and images of messages."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

# The folder of stored files; it has its name from when only images could be attached.
ATTACHMENTS = "images"


def place_of_attachment(attachment: Attachment, name: str) -> str:
    """Return the path of an attachment, which contains its id instead of its name."""
    return f"{ATTACHMENTS}/{attachment.id}"


# The name in the first migration.
place_of_image = place_of_attachment


class AttachmentManager(models.Manager["Attachment"]):
    """Reads attachments without their text, which only prompts need, but with whether they have any."""

    def get_queryset(self) -> models.QuerySet[Attachment]:
        """Return the attachments; `text` is read when it is used."""
        return super().get_queryset().defer("text").annotate(lacks_text=models.Q(text=""))


class Attachment(models.Model):
    """A file that is part of a message, which copied turns share; it is deleted with the last turn that has it.

    An image has a media type, any other file a text. If its turn is stored in memory, the file is a document there.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    file = models.FileField(upload_to=place_of_attachment, max_length=120)
    name = models.CharField(max_length=200)
    media_type = models.CharField(max_length=20, blank=True, help_text="of an image; empty: a document")
    text = models.TextField(blank=True, help_text="beginning of a document's text, for prompts; empty: an image")
    pages = models.PositiveIntegerField(default=0, help_text="pages or slides of a document; 0: none, or unknown")
    document_id = models.UUIDField(null=True, db_index=True, help_text="its document in memory")
    thread_id = models.UUIDField(
        null=True,
        db_index=True,
        help_text="first thread in which it was sent: it is stored, moved and forgotten there, not in copies",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AttachmentManager()

    class Meta:
        ordering = ["created_at"]

    @property
    def is_image(self) -> bool:
        """Return True if the model receives it as an image."""
        return bool(self.media_type)

    @property
    def is_unreadable(self) -> bool:
        """Return True if it is neither an image nor a file with text; without a query if the manager has read the row."""
        lacks_text = getattr(self, "lacks_text", None)
        return not self.is_image and (not self.text if lacks_text is None else bool(lacks_text))
