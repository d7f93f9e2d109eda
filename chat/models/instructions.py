"""Standing instructions and saved prompts of a space."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q

from chat.models.turns import Turn
from memory.models import Exchange


class InstructionQuerySet(models.QuerySet["Instruction"]):
    """Queries of instructions."""

    def present(self) -> InstructionQuerySet:
        """Return the instructions that were neither dismissed nor forgotten with their message."""
        forgotten = Exchange.objects.filter(id=OuterRef("turn__exchange_id"), forgotten_at__isnull=False)
        return self.filter(~Q(state=Instruction.State.DISMISSED), ~Exists(forgotten))


class Instruction(models.Model):
    """A standing instruction of a space, which is part of the prompts there; a person's are in their personal space.

    A dismissed one has no text; its row prevents that the same turn is detected again.
    """

    class State(models.TextChoices):
        SUGGESTED = "suggested", "does not apply until it is kept"
        RECOGNISED = "recognised", "applies until it is dismissed"
        KEPT = "kept", "kept or typed by a person"
        DISMISSED = "dismissed", "an ordinary message"

    MAX_LENGTH = 240

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    space = models.ForeignKey("memory.Space", on_delete=models.CASCADE, related_name="+")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    turn = models.OneToOneField(Turn, null=True, on_delete=models.CASCADE, related_name="+")
    text = models.CharField(max_length=MAX_LENGTH, blank=True)
    state = models.CharField(max_length=10, choices=State.choices)
    created_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True)
    off_at = models.DateTimeField(null=True, help_text="when it was switched off")

    objects = InstructionQuerySet.as_manager()

    class Meta:
        ordering = ["created_at", "id"]
        indexes = [models.Index(fields=["space", "created_at"])]


class SavedPrompt(models.Model):
    """A text with a name that the readers of a space put into the composer by typing the name after a slash."""

    MAX_NAME_LENGTH = 60
    MAX_LENGTH = 8000

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    space = models.ForeignKey("memory.Space", on_delete=models.CASCADE, related_name="+")
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=MAX_NAME_LENGTH)
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["name", "id"]
        constraints = [models.UniqueConstraint(fields=["space", "name"], name="prompt_names_are_unique_in_a_space")]
