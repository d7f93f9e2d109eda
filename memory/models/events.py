"""Events: what changed in memory, for programs that follow it."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from memory.models.spaces import Space


class Event(models.Model):
    """One change in a space, without text; deleted with the space.

    A record has events of its own kinds, under the id of its exchange. What moves has an event in each of the two spaces.
    """

    class Kind(models.TextChoices):
        EXCHANGE_STORED = "exchange.stored"
        EXCHANGE_CHANGED = "exchange.changed"
        EXCHANGE_HIDDEN = "exchange.hidden"
        EXCHANGE_SHOWN = "exchange.shown"
        EXCHANGE_MOVED_OUT = "exchange.moved_out"
        EXCHANGE_MOVED_IN = "exchange.moved_in"
        EXCHANGE_FORGOTTEN = "exchange.forgotten"
        RECORD_STORED = "record.stored"
        RECORD_CHANGED = "record.changed"
        RECORD_FORGOTTEN = "record.forgotten"
        DOCUMENT_ADDED = "document.added"
        DOCUMENT_CHANGED = "document.changed"
        DOCUMENT_PUBLISHED = "document.published"
        DOCUMENT_FAILED = "document.failed"
        DOCUMENT_MOVED_OUT = "document.moved_out"
        DOCUMENT_MOVED_IN = "document.moved_in"
        DOCUMENT_FORGOTTEN = "document.forgotten"

    kind = models.CharField(max_length=20, choices=Kind.choices)
    object_id = models.UUIDField(help_text="of the exchange or document")
    thread_id = models.UUIDField(null=True)
    space = models.ForeignKey(Space, on_delete=models.CASCADE, related_name="+", db_index=False)
    created_at = models.DateTimeField(auto_now_add=True)
    position = models.PositiveBigIntegerField(
        null=True, unique=True, help_text="place in the feed, assigned when the feed is read"
    )

    class Meta:
        indexes = [
            models.Index(fields=["space", "position"], name="event_of_space"),
            models.Index(fields=["id"], condition=Q(position=None), name="event_without_position"),
        ]


class EventFeed(models.Model):
    """The only row: its lock serialises the assignment of positions."""

    last_position = models.PositiveBigIntegerField(help_text="the last one that was assigned")
    removed_through = models.PositiveBigIntegerField(help_text="events up to this position have been removed")
