"""The abstract job; the models that inherit from it define the work."""

from __future__ import annotations

from typing import Self

from django.db import models


class Job(models.Model):
    """A unit of work in a row: due at a time, owned by a lease, with the attempt number as its fencing token."""

    class State(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        FAILED = "failed"

    state = models.CharField(max_length=7, choices=State.choices, default=State.PENDING)
    attempt = models.PositiveIntegerField(
        default=0, help_text="incremented by each claim; fences writes of earlier owners"
    )
    due_at = models.DateTimeField()
    locked_until = models.DateTimeField(null=True)
    failures = models.PositiveSmallIntegerField(
        default=0, help_text="failures of the work itself, without unavailable dependencies"
    )
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        abstract = True

    @classmethod
    def workable(cls) -> models.QuerySet[Self]:
        """Return the jobs, in any state, that workers may do now; the others wait for something else to change."""
        return cls._default_manager.all()
