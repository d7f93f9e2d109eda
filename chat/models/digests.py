"""Digests that people have switched on."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chat.models.threads import Thread
from chat.models.turns import Turn
from memory.models import Job


class Digest(Job):
    """When a person gets a digest, of which spaces, and the job that posts it; it is pending while the digest is on.

    `error` is why there was none at the last due time.
    """

    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    at = models.TimeField(help_text="time of day in the time zone")
    time_zone = models.CharField(max_length=64)
    weekday = models.PositiveSmallIntegerField(null=True, help_text="0 is Monday; empty: every day")
    space_ids = models.JSONField(
        default=list, help_text="spaces of which it tells; empty: all that the person may read"
    )
    covered_until = models.DateTimeField(help_text="end of the period of the last digest")
    thread = models.ForeignKey(Thread, null=True, on_delete=models.SET_NULL, related_name="+")
    turn = models.ForeignKey(
        Turn, null=True, on_delete=models.SET_NULL, related_name="+", help_text="the digest that is being answered"
    )
    posted_at = models.DateTimeField(null=True, help_text="when the last digest was posted")

    class Meta:
        indexes = [
            models.Index(fields=["due_at"], condition=models.Q(state="pending"), name="digest_due"),
        ]

    @property
    def is_on(self) -> bool:
        """Return whether the person gets digests."""
        return self.state == self.State.PENDING
