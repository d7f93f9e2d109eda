"""Receipts of what was forgotten everywhere."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models


class Receipt(models.Model):
    """A record of what a person forgot everywhere: ids and counts, without any text."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    turn_id = models.UUIDField(help_text="the turn at which the person forgot it")
    exchange_ids = models.JSONField(default=list, help_text="ids of all forgotten exchanges")
    passages = models.PositiveIntegerField(help_text="number of their vectors")
    citations = models.PositiveIntegerField(help_text="citations in readable answers that are empty now")

    class Meta:
        indexes = [models.Index(fields=["person", "-created_at"])]
