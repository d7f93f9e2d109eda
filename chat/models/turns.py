"""Turns, and who is mentioned in them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import ClassVar

from django.apps import apps
from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q

from chat.models.attachments import Attachment
from chat.models.threads import Thread, ThreadSession


class TurnQuerySet(models.QuerySet["Turn"]):
    """Queries of turns."""

    def active_branch(self) -> TurnQuerySet:
        """Return the turns of the active branch in order."""
        return self.filter(is_on_active_branch=True).order_by("position")

    def running(self) -> TurnQuerySet:
        """Return the turns whose answer is running."""
        # SQLite uses an index with a condition for the same condition only, and not for a list of states.
        return self.filter(~Q(state=Turn.State.COMPLETE), state__in=Turn.RUNNING_STATES)

    def unfinished(self) -> TurnQuerySet:
        """Return the turns whose answer is running or queued."""
        return self.filter(state__in=[*Turn.RUNNING_STATES, Turn.State.QUEUED])

    def with_attachment_marks(self) -> TurnQuerySet:
        """Add `has_attachments` to the turns, for `load_attachments`."""
        links = Turn.attachments.through.objects.filter(turn=OuterRef("pk"))
        return self.annotate(has_attachments=Exists(links))

    def with_addition_marks(self) -> TurnQuerySet:
        """Add `has_additions` to the turns: whether something was added to memory with a command after them."""
        additions = apps.get_model("chat", "Addition").objects.filter(turn=OuterRef("pk"))
        return self.annotate(has_additions=Exists(additions))


class Turn(models.Model):
    """A message and its answer, which can be running."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RECALLING = "recalling"
        ANSWERING = "answering"
        WAITING = "waiting", "waits for a person to allow a tool"
        COMPLETE = "complete"
        STOPPED = "stopped"
        INTERRUPTED = "interrupted"
        FAILED = "failed"

    class FinishReason(models.TextChoices):
        """Why a complete answer ended, in the values of OpenAI's protocol."""

        STOP = "stop"
        LENGTH = "length"
        CONTENT_FILTER = "content_filter"
        TOOL_CALLS = "tool_calls"

    RUNNING_STATES: ClassVar[tuple[str, ...]] = ("recalling", "answering", "waiting")
    RECALL_SKIPPED: ClassVar[str] = "slow"  # the recall note of an answer whose recall would have taken too long

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="turns")
    session = models.ForeignKey(ThreadSession, on_delete=models.PROTECT, related_name="turns")
    parent = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="children")
    position = models.PositiveIntegerField(help_text="position in the thread from 0, after its parent's")
    is_on_active_branch = models.BooleanField(
        default=True, help_text="on the branch that is shown, continued and remembered"
    )
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    client_key = models.UUIDField(help_text="idempotency key chosen by the page")
    digest_scope = models.JSONField(
        null=True, help_text="`DigestScope` as JSON: the period and spaces of which a digest tells"
    )
    api_token_id = models.UUIDField(null=True, help_text="token of the API client that posted the turn")
    is_typed = models.BooleanField(
        default=False,
        help_text="its author typed the message on a page: only such messages can become standing instructions",
    )
    message = models.TextField()
    attachments = models.ManyToManyField(Attachment, related_name="turns")
    answer = models.TextField(blank=True)
    is_refusal = models.BooleanField(
        default=False, help_text="the model refuses in this answer, as its endpoint reports"
    )
    reasoning = models.TextField(blank=True, help_text="the model's reasoning; shown, never remembered or sent")
    state = models.CharField(max_length=11, choices=State.choices, default=State.QUEUED)
    revision = models.PositiveIntegerField(default=0, help_text="incremented with each change that pages show")
    attempt = models.PositiveIntegerField(default=0, help_text="incremented with each try; fences older writers")
    heartbeat_at = models.DateTimeField(null=True)
    stop_requested = models.BooleanField(default=False)
    stopped_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="who requested to stop the answer first",
    )
    requested_model = models.CharField(
        max_length=120, blank=True, help_text="requested by an API client; empty: the thread's model"
    )
    generation_options = models.JSONField(
        default=dict,
        help_text="options of the model that an API client requested, such as `stop` and `response_format`",
    )
    tool_messages = models.JSONField(
        default=list,
        help_text="the calls of an API client's tools and their results, between message and answer, in OpenAI's format",
    )
    memory_searches = models.JSONField(
        default=list, help_text="searches of memory that the model made while it answered, in their order"
    )
    web_search = models.JSONField(
        default=dict,
        help_text="`WebSearch` as JSON: what was found on the web for its message; shown, never remembered",
    )
    tool_uses = models.JSONField(
        default=list, help_text="`ToolUse` as JSON: calls of tool servers' tools while it was answered, in their order"
    )
    model = models.CharField(max_length=120, blank=True)
    system_fingerprint = models.CharField(max_length=100, blank=True, help_text="of the model, as its endpoint sent it")
    is_dummy = models.BooleanField(default=False)
    usage = models.JSONField(default=dict)
    uncounted_usage = models.JSONField(
        null=True, help_text="`UsageCounts` as JSON: what its requests used that is not in `UsageDay` yet"
    )
    finish_reason = models.CharField(
        max_length=14,
        choices=FinishReason.choices,
        blank=True,
        help_text="empty: not complete, or unknown",
    )
    error_code = models.CharField(max_length=40, blank=True)
    error = models.CharField(max_length=300, blank=True)
    endpoint_reason = models.JSONField(
        default=dict,
        help_text="`EndpointReason` as JSON: why the model endpoint rejected the request; for the client, not shown",
    )
    recall_ms = models.PositiveIntegerField(null=True, help_text="duration of recall in milliseconds")
    recall_note = models.CharField(max_length=20, blank=True, help_text="reason for missing or limited recall")
    images_dropped = models.BooleanField(
        default=False, help_text="the model does not accept images and answered without them"
    )
    withheld = models.JSONField(
        default=dict,
        help_text="number of `sources` and `instructions` that the endpoint `of` the answer may not receive; empty: none",
    )
    fallback = models.JSONField(
        default=dict, help_text="which endpoint answered `instead_of` which one that did not; empty: the chosen one"
    )
    applied_instructions = models.JSONField(
        default=list, help_text="ids of the standing instructions in the prompt, in their order"
    )
    has_instruction = models.BooleanField(default=False, help_text="its message was detected as a standing instruction")
    is_correction = models.BooleanField(
        default=False, help_text="its message was detected as a correction of the answer before it"
    )
    exchange_id = models.UUIDField(null=True, help_text="the turn's exchange in memory")
    is_missing_in_memory = models.BooleanField(
        default=False, help_text="answered while the vector store was disabled; `backfill --from-history` stores it"
    )
    copied_exchange_id = models.UUIDField(null=True, help_text="of a copied turn: the original turn's exchange")
    created_at = models.DateTimeField(auto_now_add=True)
    completed_at = models.DateTimeField(null=True)

    objects = TurnQuerySet.as_manager()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "client_key"], name="a_message_sent_twice_is_one_turn"),
            models.UniqueConstraint(
                fields=["thread"],
                condition=Q(state__in=["recalling", "answering", "waiting"]),
                name="one_answer_at_a_time",
            ),
        ]
        indexes = [
            models.Index(fields=["thread", "position"]),
            models.Index(fields=["author", "client_key"], name="turn_of_author"),
            models.Index(fields=["author", "state"], condition=~Q(state="complete"), name="turn_not_complete"),
            models.Index(fields=["created_at"]),
            models.Index(fields=["thread"], condition=Q(state="queued"), name="turn_queued"),
            models.Index(fields=["created_at"], condition=Q(is_missing_in_memory=True), name="turn_missing_in_memory"),
            models.Index(fields=["id"], condition=Q(uncounted_usage__isnull=False), name="turn_uncounted"),
            models.Index(fields=["state", "heartbeat_at"], condition=~Q(state="complete"), name="turn_active"),
        ]

    @property
    def shown_attachments(self) -> list[Attachment]:
        """The attachments of the message, without a query if `with_attachment_marks` has found that there are none."""
        return list(self.attachments.all()) if getattr(self, "has_attachments", True) else []

    @property
    def is_running(self) -> bool:
        """Return whether the turn is recalling or answering."""
        return self.state in self.RUNNING_STATES

    @property
    def can_retry(self) -> bool:
        """Return whether the answer can be restarted from the beginning: it ended early."""
        return self.state in (self.State.FAILED, self.State.INTERRUPTED, self.State.STOPPED)

    @property
    def can_resume(self) -> bool:
        """Return whether the answer can be continued from its partial text."""
        return self.has_room and (self.can_retry or self.is_cut_off)

    @property
    def is_cut_off(self) -> bool:
        """Return whether the answer ended at the length limit."""
        return self.state == self.State.COMPLETE and self.finish_reason == self.FinishReason.LENGTH

    @property
    def waits_for_tools(self) -> bool:
        """Return whether the model has called tools of the API client, which has not sent their results yet."""
        return self.state == self.State.COMPLETE and self.finish_reason == self.FinishReason.TOOL_CALLS

    @property
    def called_tools(self) -> list[str]:
        """The names of the client's tools that the model called, in the order of their first calls."""
        calls = [call for message in self.tool_messages for call in message.get("tool_calls", ())]
        return list(dict.fromkeys(call["function"]["name"] for call in calls))

    @property
    def has_room(self) -> bool:
        """Return whether there is a partial answer below the length limit, which can be resumed."""
        return bool(self.answer.strip()) and len(self.answer) < settings.CATO.chat.max_answer_chars

    @property
    def effective_exchange_id(self) -> uuid.UUID | None:
        """The exchange of this turn, or of the turn of which it is a copy."""
        return self.exchange_id or self.copied_exchange_id


class Mention(models.Model):
    """A person who is named in the message of a turn."""

    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="mentions")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["turn", "person"], name="a_turn_mentions_a_person_once")]
        indexes = [models.Index(fields=["person", "-created_at"])]


def load_attachments(turns: Iterable[Turn]) -> None:
    """Load the attachments of these turns (read `with_attachment_marks`) with one query, or none if there are none."""
    models.prefetch_related_objects([turn for turn in turns if getattr(turn, "has_attachments", True)], "attachments")
