"""Threads, what each reader marks in them, and their sessions."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q


class Thread(models.Model):
    """A conversation in one space; `head` is the last turn of the active branch."""

    class TitleSource(models.TextChoices):
        FIRST_MESSAGE = "first", "the first message"
        MODEL = "model", "the model"
        USER = "own", "a user"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    space = models.ForeignKey("memory.Space", on_delete=models.PROTECT, related_name="+")
    title = models.CharField(max_length=200)
    title_source = models.CharField(max_length=5, choices=TitleSource.choices, default=TitleSource.FIRST_MESSAGE)
    is_remembered = models.BooleanField(default=True)
    model = models.CharField(max_length=120, blank=True, help_text="empty: the configured model")
    recall_filter = models.JSONField(
        default=dict, help_text="documents and metadata that recall is limited to; empty: no limit"
    )
    instructions = models.TextField(blank=True, help_text="system messages of an API client, added to the base prompt")
    disabled_instructions = models.JSONField(
        default=list, help_text="ids of standing instructions that do not apply in this thread"
    )
    tool_server_ids = models.JSONField(
        default=list, help_text="tool servers whose tools the model may call in this thread"
    )
    has_web_search = models.BooleanField(default=False, help_text="the web is searched for its messages")
    opening_hash = models.CharField(
        max_length=64,
        blank=True,
        help_text="hash of the first message of an API client's conversation, used to find it",
    )
    uncounted_title = models.JSONField(
        null=True, help_text="`UsageCounts` as JSON: what the request for its title used that is not in `UsageDay` yet"
    )
    head = models.ForeignKey("Turn", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    last_message_at = models.DateTimeField(help_text="time of the last message")
    changed_at = models.DateTimeField(null=True, help_text="when a message or answer was last completed")
    deleted_at = models.DateTimeField(
        null=True, help_text="hidden since then; can be restored for a short time, then deleted"
    )

    class Meta:
        indexes = [
            models.Index(fields=["space", "-last_message_at"]),
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="thread_to_remove"),
            models.Index(fields=["owner", "opening_hash"]),
            models.Index(fields=["space"], condition=Q(is_remembered=False), name="thread_not_remembered"),
            models.Index(fields=["id"], condition=Q(uncounted_title__isnull=False), name="thread_uncounted_title"),
        ]

    def is_answering(self) -> bool:
        """Return whether an answer is running in the thread."""
        return self.turns.running().exists()


class ReaderMarks(models.Model):
    """The marks of one person in a thread: when they read it and had it open, and whether they pinned, muted or archived it."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="reader_marks")
    last_read_at = models.DateTimeField(null=True)
    last_present_at = models.DateTimeField(
        null=True, help_text="when one of their pages last reported the thread as open"
    )
    left_at = models.DateTimeField(null=True, help_text="when they last closed a page of the thread")
    pinned_at = models.DateTimeField(null=True, help_text="when they pinned it to the top of their list")
    muted_at = models.DateTimeField(null=True, help_text="when they muted it: no unread marks, no notifications")
    archived_at = models.DateTimeField(null=True, help_text="when they removed it from their list")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "thread"], name="one_mark_for_each_reader")]
        indexes = [
            models.Index(fields=["person"], condition=Q(pinned_at__isnull=False), name="thread_pinned_by"),
            models.Index(fields=["person"], condition=Q(archived_at__isnull=False), name="thread_archived_by"),
        ]


class ThreadSession(models.Model):
    """A sitting in a thread; `seq` counts them from 0."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="sessions")
    seq = models.PositiveIntegerField(default=0)
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    started_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["thread", "seq"], name="sessions_are_numbered_once")]
