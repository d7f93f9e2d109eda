"""What people added to memory with a command in a thread."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chat.models.turns import Turn


class Addition(models.Model):
    """An exchange or a document that a person added with a command, after a turn of a thread.

    It has no text: a page shows what its reader may read in memory. The rows of one command have the same `added_at`.
    """

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="additions")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    exchange_id = models.UUIDField(null=True, db_index=True, help_text="of a note")
    document_id = models.UUIDField(null=True, db_index=True, help_text="empty: it is a note")
    added_at = models.DateTimeField()

    class Meta:
        ordering = ["added_at", "id"]
