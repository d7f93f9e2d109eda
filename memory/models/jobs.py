"""The abstract job; the models that inherit from it define the work."""

from __future__ import annotations

from django.db import models


class Job(models.Model):
    """A unit of work in a row: due at a time, owned by a lease, with the attempt number as its fencing token."""

    class State(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        FAILED = "failed"

    state = models.CharField(max_length=7, choices=State.choices, default=State.PENDING)
    attempt = models.PositiveIntegerField(
        default=0, help_text="rises at every claim; a late write of an older one is void"
    )
    due_at = models.DateTimeField()
    locked_until = models.DateTimeField(null=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text="how often the work itself failed")
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        abstract = True
