"""Knowledge: statements, the exchanges that support them, and the extraction of each space."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from memory.models.exchanges import Exchange
from memory.models.jobs import Job
from memory.models.spaces import Space


def default_daily_tokens() -> int:
    """Return the daily budget of tokens of a space for which none was set."""
    return int(settings.CATO.knowledge.daily_tokens)


class SpaceKnowledge(Job):
    """The extraction of statements from a space: its settings, its job, and the tokens that it used on one day."""

    space = models.OneToOneField(Space, on_delete=models.CASCADE, related_name="knowledge")
    is_on = models.BooleanField(default=False)
    is_paused = models.BooleanField(default=False)
    model = models.CharField(max_length=120, blank=True, help_text="the chat model; empty: the default of the endpoint")
    daily_tokens = models.PositiveIntegerField(default=default_daily_tokens)
    tokens_used = models.PositiveIntegerField(default=0)
    tokens_used_on = models.DateField(null=True)
    backlog = models.PositiveIntegerField(
        default=0, help_text="the most exchanges that were unread at the beginning of a run since none was"
    )
    failed_at = models.DateTimeField(null=True, help_text="when a run failed last; `error` is empty once another began")

    class Meta:
        indexes = [models.Index(fields=["due_at"], condition=Q(is_on=True), name="extraction_due")]


class Statement(models.Model):
    """One sentence of knowledge. Text, space, terms and vectors are those of its exchange, whose author said it first.

    It is deleted when its exchange is forgotten. The exchange is inactive if the statement is rejected, and while all its
    sources are inactive.
    """

    class Kind(models.TextChoices):
        DECISION = "decision"
        FACT = "fact"
        PREFERENCE = "preference"
        PLAN = "plan"

    class State(models.TextChoices):
        CURRENT = "current"
        SUPERSEDED = "superseded"
        CONFLICTING = "conflicting"
        REJECTED = "rejected"

    exchange = models.OneToOneField(Exchange, on_delete=models.CASCADE, primary_key=True, related_name="statement")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    topic = models.CharField(max_length=80)
    state = models.CharField(max_length=11, choices=State.choices, default=State.CURRENT)
    state_since = models.DateTimeField()
    state_set_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    superseded_by = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="supersedes")
    first_said_at = models.DateTimeField()
    last_said_at = models.DateTimeField()
    confirmed_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    confirmed_at = models.DateTimeField(null=True)
    revision = models.PositiveIntegerField(default=1, help_text="incremented by each change")


class Support(models.Model):
    """A source of a statement, with the words that support it; deleted when the exchange is forgotten."""

    statement = models.ForeignKey(Statement, on_delete=models.CASCADE, related_name="supports")
    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="supported")
    quote = models.CharField(max_length=500, help_text="words of the exchange, as they are in its text")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["statement", "exchange"], name="supported_once")]


class StatementConflict(models.Model):
    """Two statements that contradict each other, until a person decides between them."""

    one = models.ForeignKey(Statement, on_delete=models.CASCADE, related_name="+")
    other = models.ForeignKey(Statement, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["one", "other"], name="one_conflict_a_pair")]
