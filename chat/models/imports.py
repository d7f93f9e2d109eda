"""Imports of conversations."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from memory.models import Job

IMPORTS = "imports"  # the folder of files to import


def place_of_import(row: ImportJob, name: str) -> str:
    """Return the path of a file to import."""
    return f"{IMPORTS}/{row.id}"


class ImportJob(Job):
    """An import of a file of conversations, with its progress and counts.

    The file is deleted when the import ends. The counts are those of `chat.imports.report.ImportReport`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    space = models.ForeignKey(
        "memory.Space",
        null=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="where it imports to; empty: the personal space",
    )
    has_channel_projects = models.BooleanField(
        default=False, help_text="each channel of a team chat goes to a project of its own"
    )
    file = models.FileField(upload_to=place_of_import, max_length=120, blank=True)
    name = models.CharField(max_length=255, help_text="original name of the file")
    total = models.PositiveIntegerField(null=True, help_text="number of conversations in the file, once counted")
    read = models.PositiveIntegerField(default=0, help_text="number of processed conversations")
    found = models.PositiveIntegerField(default=0)
    imported = models.PositiveIntegerField(default=0)
    already_there = models.PositiveIntegerField(default=0)
    turns = models.PositiveIntegerField(default=0)
    skipped_count = models.PositiveIntegerField(default=0)
    skipped = models.JSONField(default=list, help_text="titles of skipped conversations with reasons")
    left_out = models.JSONField(default=dict)
    not_imported = models.JSONField(default=dict, help_text="number of items that were not imported, by the reason")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-created_at"]),
            models.Index(fields=["due_at"], condition=Q(state="pending"), name="import_due"),
        ]

    @property
    def is_under_way(self) -> bool:
        """Return whether the import is due or running."""
        return self.state == self.State.PENDING
