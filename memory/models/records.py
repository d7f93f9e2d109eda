"""Records that other programs store."""

from __future__ import annotations

from django.db import models

from memory.models.exchanges import Exchange
from memory.models.index import IndexGeneration
from memory.models.spaces import Space


class Record(models.Model):
    """An exchange that another program stores under an id of its own, optionally with its own vector."""

    exchange = models.OneToOneField(Exchange, on_delete=models.CASCADE, related_name="record")
    space = models.ForeignKey(Space, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=255)
    vector = models.BinaryField(null=True, help_text="float32, as received; null: embedded from the text")
    generation = models.ForeignKey(
        IndexGeneration,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="the generation whose dimension the vector has",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["space", "name"], name="one_record_of_a_name")]
