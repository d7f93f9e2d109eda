"""The usage of models by day, the prices of models, and the limits of usage in a calendar month."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import Q, Value
from django.db.models.functions import Coalesce
from django.utils.translation import gettext_lazy as _

_NOBODY = Value(uuid.UUID(int=0), output_field=models.UUIDField())  # NULLs would be distinct in a unique index


class UsageDay(models.Model):
    """The usage of one model by one person on one day in UTC, in one space, through one API token, for one purpose.

    The ids are no references: sums remain when the person, the space or the token is deleted.
    """

    class Purpose(models.TextChoices):
        ANSWER = "answer", _("Answers")
        TITLE = "title", _("Titles")
        EXTRACTION = "extraction", _("Knowledge")
        DICTATION = "dictation", _("Dictation")
        SPEECH = "speech", _("Reading aloud")
        BACKGROUND = "background", _("Background requests of apps")

    date = models.DateField()
    purpose = models.CharField(max_length=10, choices=Purpose.choices)
    model = models.CharField(max_length=120)
    person_id = models.UUIDField(null=True, help_text="empty: of a shared space, or of a deleted account")
    space_id = models.UUIDField(null=True, help_text="empty: without a thread, or of a deleted account")
    api_token_id = models.UUIDField(null=True)
    requests = models.PositiveBigIntegerField(default=0)
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0, help_text="those of the prompt tokens that were cached")
    completion_tokens = models.PositiveBigIntegerField(default=0)
    estimated_tokens = models.PositiveBigIntegerField(default=0, help_text="those that the endpoint did not report")
    unpriced_tokens = models.PositiveBigIntegerField(default=0, help_text="those whose model had no price")
    cost = models.DecimalField(
        max_digits=20, decimal_places=9, default=0, help_text="of the others, at their prices then"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "date",
                "purpose",
                "model",
                Coalesce("person_id", _NOBODY),
                Coalesce("space_id", _NOBODY),
                Coalesce("api_token_id", _NOBODY),
                name="one_usage_row_a_day",
            )
        ]
        indexes = [
            models.Index(fields=["person_id", "date"]),
            models.Index(fields=["space_id", "date"]),
            models.Index(fields=["api_token_id", "date"]),
        ]


class ModelPrice(models.Model):
    """The price of a model's tokens, for a million of each kind."""

    model = models.CharField(max_length=120, unique=True)
    input_price = models.DecimalField(max_digits=12, decimal_places=4)
    cached_price = models.DecimalField(max_digits=12, decimal_places=4, null=True, help_text="empty: as other input")
    output_price = models.DecimalField(max_digits=12, decimal_places=4)


class UsageLimit(models.Model):
    """How much may be used in a calendar month in UTC; above `soft` there is a notice, from `hard` on no new message."""

    class Target(models.TextChoices):
        EVERYONE = "everyone", _("Each person without a limit of their own")
        PERSON = "person", _("Person")
        SPACE = "space", _("Group or project")
        TOKEN = "token", _("API token")

    class Unit(models.TextChoices):
        TOKENS = "tokens", _("Tokens")
        MONEY = "money", _("Money")

    target = models.CharField(max_length=8, choices=Target.choices)
    target_id = models.UUIDField(null=True, help_text="empty: everyone")
    unit = models.CharField(max_length=6, choices=Unit.choices)
    soft = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    hard = models.DecimalField(max_digits=20, decimal_places=4, null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("target", Coalesce("target_id", _NOBODY), name="one_limit_of_each"),
            models.CheckConstraint(
                condition=Q(target="everyone", target_id=None) | ~Q(target="everyone") & Q(target_id__isnull=False),
                name="only_everyone_has_no_id",
            ),
        ]


class UsageSettings(models.Model):
    """The currency of all prices; at most one row."""

    currency = models.CharField(max_length=12)
