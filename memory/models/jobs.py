"""A piece of work as a row; what is to be done is said by those that inherit from it."""

from __future__ import annotations

from django.db import models


class Job(models.Model):
    """A piece of work as a row: due at a time, held by a lease, fenced by its attempt number."""

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
