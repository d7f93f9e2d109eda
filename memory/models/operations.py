"""Operations of administrators, retention rules and reveals."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from memory.models.exchanges import Exchange
from memory.models.jobs import Job
from memory.models.spaces import Space


class Operation(Job):
    """A long administrative job that a worker runs: its request, progress and result."""

    class Kind(models.TextChoices):
        FORGET = "forget", _("Forget exchanges")
        FORGET_DOCUMENTS = "documents", _("Delete documents")
        RETENTION = "retention", _("Forget what is too old")
        BACKFILL = "backfill", _("Embed what has no vector")
        RECONCILE = "reconcile", _("Compare database and index")
        ERASE = "erase", _("Remove what was forgotten from the files")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=9, choices=Kind.choices)
    parameters = models.JSONField(default=dict, help_text="arguments, which depend on the kind")
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    total = models.PositiveIntegerField(null=True, help_text="number of items to process, if known")
    processed = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=dict, help_text="results by kind of item")
    finished_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["-created_at"]),
            models.Index(fields=["due_at"], condition=Q(state="pending"), name="operation_due"),
        ]

    @property
    def is_under_way(self) -> bool:
        """Return True until the operation is done, failed or cancelled."""
        return self.state == self.State.PENDING


class RetentionRule(models.Model):
    """For how many days exchanges and documents of one source are kept; without a row they are kept forever."""

    source = models.CharField(max_length=12, choices=Exchange.Source.choices, unique=True)
    days = models.PositiveIntegerField()
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    set_at = models.DateTimeField(auto_now=True)


class Reveal(models.Model):
    """Access of an administrator to the text of a space that they may not read otherwise, with reason and end."""

    space = models.ForeignKey(Space, on_delete=models.CASCADE, related_name="reveals")
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    reason = models.CharField(max_length=300)
    at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["by", "ends_at"])]
