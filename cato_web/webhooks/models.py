"""Webhooks, each with the place that it has reached in the feed of events."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from cato_web.accounts.models import ApiToken
from memory.models import Job


class Webhook(Job):
    """An address to which the events that a person can read are sent, and the job that sends them.

    It is pending while events wait for it, done when it has all of them, and failed when it is disabled, with the reason
    as its error. It acts through the token that created it, and is deleted with it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    api_token = models.ForeignKey(ApiToken, on_delete=models.CASCADE, related_name="webhooks")
    address = models.CharField(max_length=2000)
    encrypted_secret = models.BinaryField()
    kinds = models.JSONField(default=list, help_text="kinds of the events that are sent; empty: all")
    position = models.PositiveBigIntegerField(help_text="place in the feed up to which events were sent")
    batch_end = models.PositiveBigIntegerField(
        null=True, help_text="end of the batch that is being sent; every attempt sends the same batch"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    delivered_at = models.DateTimeField(null=True, help_text="when the receiver last accepted a batch")
    failing_since = models.DateTimeField(null=True, help_text="first failed attempt since then")
    skipped_at = models.DateTimeField(null=True, help_text="when events were left out that were not kept any more")

    class Meta:
        ordering = ["created_at", "id"]

    @classmethod
    def workable(cls) -> models.QuerySet[Webhook]:
        """Return the webhooks that may be sent to: those whose tokens are valid now."""
        if not settings.CATO.api.enabled:
            return cls._default_manager.none()
        return cls._default_manager.filter(api_token__in=ApiToken.objects.valid())
