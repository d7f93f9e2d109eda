"""Jobs about an account: its deletion, and the export of its data."""

from __future__ import annotations

import uuid

from django.db import models

from cato_web.accounts.models.users import User
from memory.models import Job

EXPORTS = "exports"  # the folder of archives


class AccountDeletion(Job):
    """An account deletion: what the account contained, and the job that removes it.

    Only the hash of the receipt's token is stored.
    """

    person = models.OneToOneField(User, on_delete=models.PROTECT, related_name="+")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField()
    emptied_at = models.DateTimeField(null=True, help_text="when all contents had been removed")
    login_sessions = models.PositiveIntegerField()
    threads = models.PositiveIntegerField()
    exchanges = models.PositiveIntegerField()
    documents = models.PositiveIntegerField()


class ExportJob(Job):
    """The archive of a person's data: how far a worker is with it, and its file until it expires.

    The file contains nothing that was forgotten later: it is deleted once its rows have another `fingerprint`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.OneToOneField(User, on_delete=models.PROTECT, related_name="+")
    requested_at = models.DateTimeField()
    selected_at = models.DateTimeField(null=True, help_text="the archive has the rows that existed at this time")
    finished_at = models.DateTimeField(null=True)
    total = models.PositiveIntegerField(null=True, help_text="number of entries, once counted")
    read = models.PositiveIntegerField(default=0, help_text="number of entries in the archive until now")
    file = models.FileField(upload_to=EXPORTS, max_length=120, blank=True)
    size = models.PositiveBigIntegerField(default=0, help_text="bytes")
    fingerprint = models.CharField(max_length=64, blank=True, help_text="of the rows of the archive")
    is_outdated = models.BooleanField(default=False, help_text="its file was deleted because rows were forgotten")
    is_check_due = models.BooleanField(default=False, help_text="something was forgotten since the last check")

    class Meta:
        indexes = [models.Index(fields=["due_at"], condition=models.Q(state="pending"), name="export_due")]
