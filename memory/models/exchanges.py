"""Exchanges, with their terms, metadata, records of programs, feedback, supersessions and recall log."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from memory.models.spaces import Space


def is_findable(path: str) -> Q:
    """Return the condition that the exchange at this path of a row is neither forgotten nor inactive.

    For rows that refer to few exchanges: with `in` a query set of all findable ones, SQLite would collect these first.
    """
    return Q(**{f"{path}__forgotten_at": None, f"{path}__is_inactive": False})


class ExchangeQuerySet(models.QuerySet["Exchange"]):
    """Query set of exchanges."""

    def findable(self) -> ExchangeQuerySet:
        """Return the exchanges that recall, search and statistics use: neither forgotten nor inactive."""
        return self.filter(forgotten_at=None, is_inactive=False)

    def citable(self) -> ExchangeQuerySet:
        """Return the exchanges that recall panels show: the findable ones, and other versions of messages.

        An answer that cites a message keeps its sources when somebody regenerates the answer to that message.
        """
        return self.filter(Q(is_inactive=False) | Q(is_citable=True), forgotten_at=None)


class Exchange(models.Model):
    """One message with its answer, a note, or a chunk of a document: the unit of memory.

    A forgotten exchange remains as a tombstone without text, so that it is not imported again. `forgotten_at` is set
    first. `erased_at` follows when vectors, cached embedding and terms are verified as removed.
    """

    class Source(models.TextChoices):
        CHAT = "chat"
        NOTE = "vadd_command"
        SERVER_FOLDER = "vdoc_command"
        UPLOAD = "upload"
        CLI = "cli"
        IMPORT = "import"
        API = "api"
        KNOWLEDGE = "knowledge"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    space = models.ForeignKey(Space, on_delete=models.PROTECT)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    thread_id = models.UUIDField(null=True, db_index=True)
    session_id = models.UUIDField(null=True, db_index=True)
    previous = models.ForeignKey(
        "self",
        null=True,
        on_delete=models.SET_NULL,
        related_name="following",
        help_text="the exchange before it in its session, or the chunk before it",
    )
    turn_id = models.UUIDField(null=True, unique=True)
    thread_continuation_seq = models.PositiveIntegerField(default=0)
    user_message = models.TextField()
    assistant_message = models.TextField(blank=True)
    timestamp = models.DateTimeField(help_text="time of the message, UTC")
    created_at = models.DateTimeField(auto_now_add=True)
    prior_exchange_ids = models.JSONField(default=list)
    source = models.CharField(max_length=12, choices=Source.choices)
    manual_entry = models.BooleanField(default=False)
    source_file = models.CharField(max_length=255, blank=True)
    chunk_index = models.PositiveIntegerField(null=True)
    total_chunks = models.PositiveIntegerField(null=True)
    metadata = models.JSONField(default=dict)
    size = models.PositiveIntegerField(help_text="characters of both texts")
    content_hash = models.CharField(max_length=64, db_index=True, blank=True)
    version = models.PositiveIntegerField(
        default=1, help_text="incremented when the text changes; part of the vector ids"
    )
    is_inactive = models.BooleanField(
        default=False, help_text="on an inactive branch, or a chunk of a document version that is not live"
    )
    is_citable = models.BooleanField(
        default=False,
        help_text="inactive because another version is shown: answers for which it was recalled still show it",
    )
    is_extracted = models.BooleanField(
        default=False, help_text="extraction has read it, or it is a statement; unset when it is to be read again"
    )
    forgotten_at = models.DateTimeField(null=True)
    forgotten_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    forgotten_by_operation = models.ForeignKey(
        "Operation",
        null=True,
        on_delete=models.SET_NULL,
        related_name="forgotten",
        help_text="the bulk operation that forgot it",
    )
    erased_at = models.DateTimeField(null=True)

    objects = ExchangeQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(fields=["space", "-timestamp"]),
            models.Index(fields=["-timestamp", "id"], name="exchange_newest"),
            models.Index(fields=["space", "timestamp"], condition=Q(source="vadd_command"), name="exchange_note"),
            models.Index(fields=["space", "owner"], name="exchange_authors"),
            models.Index(fields=["forgotten_at"], condition=Q(forgotten_at__isnull=False), name="exchange_forgotten"),
            models.Index(fields=["forgotten_at"], condition=Q(erased_at=None), name="exchange_to_erase"),
            models.Index(
                fields=["space", "timestamp"],
                condition=Q(is_extracted=False, forgotten_at=None),
                name="exchange_unread",
            ),
        ]

    def get_absolute_url(self) -> str:
        """Return the address of its page, which ABSOLUTE_URL_OVERRIDES defines."""
        raise NotImplementedError

    @property
    def thread_session_id(self) -> str | None:
        """Return thread and session as one id, None outside of threads."""
        return f"{self.thread_id}_{self.session_id}" if self.thread_id else None


class LexicalEntry(models.Model):
    """The terms of an exchange, as the analyser returns them; migration 0002 adds a full-text index."""

    exchange = models.OneToOneField(Exchange, on_delete=models.CASCADE, related_name="lexical_entry")
    space = models.ForeignKey(Space, on_delete=models.PROTECT, related_name="+")
    terms = models.TextField(help_text="in text order, separated by spaces")
    length = models.PositiveIntegerField(db_index=True, help_text="number of terms")


class MetadataValue(models.Model):
    """One scalar of an exchange's metadata, for filters; a list has one row per member."""

    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="metadata_values")
    key = models.CharField(max_length=100)
    is_member = models.BooleanField(default=False, help_text="a member of a list")
    text = models.CharField(max_length=500, null=True)
    number = models.FloatField(null=True)
    boolean = models.BooleanField(null=True)

    class Meta:
        indexes = [models.Index(fields=["key", "text"]), models.Index(fields=["key", "number"])]


class Record(models.Model):
    """An exchange that another program stores under an id of its own, optionally with its own vector."""

    exchange = models.OneToOneField(Exchange, on_delete=models.CASCADE, related_name="record")
    space = models.ForeignKey(Space, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=255)
    vector = models.BinaryField(null=True, help_text="float32, as received; null: embedded from the text")
    generation = models.ForeignKey(
        "IndexGeneration",
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="the generation whose dimension the vector has",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["space", "name"], name="one_record_of_a_name")]


class Feedback(models.Model):
    """A person's feedback on a recalled exchange."""

    class Kind(models.TextChoices):
        PINNED = "pinned", "always in the running"
        IRRELEVANT = "irrelevant", "never again for this person"

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="feedback")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "exchange"], name="one_feedback_an_exchange")]


class Supersession(models.Model):
    """A person's decision, for themselves, whether a later recalled message supersedes an earlier one."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    later = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="+")
    earlier = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="+")
    is_confirmed = models.BooleanField(help_text="false: they are on different subjects")
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "later", "earlier"], name="one_decision_a_pair")]


class RecallLogEntry(models.Model):
    """The use of an exchange for a turn, with the reason but without its text."""

    turn_id = models.UUIDField()
    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="recalls")
    rank = models.PositiveSmallIntegerField(help_text="number of its passage in the prompt")
    similarity = models.FloatField(null=True)
    score = models.FloatField()
    strategy = models.CharField(max_length=40)
    reason = models.CharField(max_length=300)
    later = models.ForeignKey(
        Exchange,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="the latest message on the same subject that was recalled with it",
    )
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["turn_id", "exchange"], name="recalled_once_a_turn")]
        indexes = [models.Index(fields=["at"])]
