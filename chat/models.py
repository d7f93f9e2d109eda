"""The tables of chat: threads, thread sessions, turns, attachments, the model endpoint and imports."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q

from memory.models import Exchange, Job

# Folders of stored files. That of attachments has its name from when only images could be attached.
ATTACHMENTS, IMPORTS = "images", "imports"


def place_of_attachment(attachment: Attachment, name: str) -> str:
    """Return the path of an attachment, which contains its id instead of its name."""
    return f"{ATTACHMENTS}/{attachment.id}"


# The name in the first migration.
place_of_image = place_of_attachment


def place_of_import(row: ImportJob, name: str) -> str:
    """Return the path of a file to import."""
    return f"{IMPORTS}/{row.id}"


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
    opening_hash = models.CharField(
        max_length=64,
        blank=True,
        help_text="hash of the first message of an API client's conversation, used to find it",
    )
    head = models.ForeignKey("Turn", null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    last_message_at = models.DateTimeField(help_text="time of the last message")
    changed_at = models.DateTimeField(null=True, help_text="when a message or answer was last completed")
    pinned_at = models.DateTimeField(null=True, help_text="when it was pinned to the top of the list")
    archived_at = models.DateTimeField(null=True, help_text="when it was removed from the list")
    deleted_at = models.DateTimeField(
        null=True, help_text="hidden since then; can be restored for a short time, then deleted"
    )

    class Meta:
        indexes = [
            models.Index(fields=["space", "-last_message_at"]),
            models.Index(fields=["deleted_at"], condition=Q(deleted_at__isnull=False), name="thread_to_remove"),
            models.Index(fields=["space", "-pinned_at"], condition=Q(pinned_at__isnull=False), name="thread_pinned"),
            models.Index(fields=["owner", "opening_hash"]),
        ]

    def is_answering(self) -> bool:
        """Return whether an answer is running in the thread."""
        return self.turns.filter(state__in=Turn.RUNNING_STATES).exists()

    def is_busy(self) -> bool:
        """Return whether an answer is running or queued in the thread."""
        return self.turns.filter(state__in=[*Turn.RUNNING_STATES, Turn.State.QUEUED]).exists()


class ReadMarker(models.Model):
    """How far a person has read a thread, and when they last had it open."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="read_marks")
    last_read_at = models.DateTimeField()
    last_present_at = models.DateTimeField(
        null=True, help_text="when one of their pages last reported the thread as open"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "thread"], name="one_mark_for_each_reader")]


class ThreadSession(models.Model):
    """A sitting in a thread; `seq` counts them from 0."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    thread = models.ForeignKey(Thread, on_delete=models.CASCADE, related_name="sessions")
    seq = models.PositiveIntegerField(default=0)
    started_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    started_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["thread", "seq"], name="sessions_are_numbered_once")]


class AttachmentManager(models.Manager["Attachment"]):
    """Reads attachments without their text, which only prompts need."""

    def get_queryset(self) -> models.QuerySet[Attachment]:
        """Return the attachments; `text` is read when it is used."""
        return super().get_queryset().defer("text")


class Attachment(models.Model):
    """A file that is part of a message, which copied turns share; it is deleted with the last turn that has it.

    An image has a media type, any other file a text. If its turn is stored in memory, the file is a document there.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    file = models.FileField(upload_to=place_of_attachment, max_length=120)
    name = models.CharField(max_length=200)
    media_type = models.CharField(max_length=20, blank=True, help_text="of an image; empty: a document")
    text = models.TextField(blank=True, help_text="beginning of a document's text, for prompts; empty: an image")
    document_id = models.UUIDField(null=True, db_index=True, help_text="its document in memory")
    thread_id = models.UUIDField(
        null=True,
        db_index=True,
        help_text="first thread in which it was sent: it is stored, moved and forgotten there, not in copies",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AttachmentManager()

    class Meta:
        ordering = ["created_at"]

    @property
    def is_image(self) -> bool:
        """Return True if the model receives it as an image."""
        return bool(self.media_type)


class TurnQuerySet(models.QuerySet["Turn"]):
    """Queries of turns."""

    def active_branch(self) -> TurnQuerySet:
        """Return the turns of the active branch in order."""
        return self.filter(is_on_active_branch=True).order_by("position")

    def with_attachment_marks(self) -> TurnQuerySet:
        """Add `has_attachments` to the turns, for `load_attachments`."""
        links = Turn.attachments.through.objects.filter(turn=OuterRef("pk"))
        return self.annotate(has_attachments=Exists(links))


class Turn(models.Model):
    """A message and its answer, which can be running."""

    class State(models.TextChoices):
        QUEUED = "queued"
        RECALLING = "recalling"
        ANSWERING = "answering"
        COMPLETE = "complete"
        STOPPED = "stopped"
        INTERRUPTED = "interrupted"
        FAILED = "failed"

    class FinishReason(models.TextChoices):
        """Why a complete answer ended, in the values of OpenAI's protocol."""

        STOP = "stop"
        LENGTH = "length"
        CONTENT_FILTER = "content_filter"

    RUNNING_STATES: ClassVar[tuple[str, ...]] = ("recalling", "answering")
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
    api_token_id = models.UUIDField(null=True, help_text="token of the API client that posted the turn")
    is_typed = models.BooleanField(
        default=False,
        help_text="its author typed the message on a page: only such messages can become standing instructions",
    )
    message = models.TextField()
    attachments = models.ManyToManyField(Attachment, related_name="turns")
    answer = models.TextField(blank=True)
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
    model = models.CharField(max_length=120, blank=True)
    is_dummy = models.BooleanField(default=False)
    usage = models.JSONField(default=dict)
    finish_reason = models.CharField(
        max_length=14,
        choices=FinishReason.choices,
        blank=True,
        help_text="empty: not complete, or unknown",
    )
    error_code = models.CharField(max_length=40, blank=True)
    error = models.CharField(max_length=300, blank=True)
    recall_ms = models.PositiveIntegerField(null=True, help_text="duration of recall in milliseconds")
    recall_note = models.CharField(max_length=20, blank=True, help_text="reason for missing or limited recall")
    images_dropped = models.BooleanField(
        default=False, help_text="the model does not accept images and answered without them"
    )
    applied_instructions = models.JSONField(
        default=list, help_text="ids of the standing instructions in the prompt, in their order"
    )
    has_instruction = models.BooleanField(default=False, help_text="its message was detected as a standing instruction")
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
                fields=["thread"], condition=Q(state__in=["recalling", "answering"]), name="one_answer_at_a_time"
            ),
        ]
        indexes = [
            models.Index(fields=["thread", "position"]),
            models.Index(fields=["created_at"], condition=Q(is_missing_in_memory=True), name="turn_missing_in_memory"),
            models.Index(
                fields=["heartbeat_at"], condition=Q(state__in=["recalling", "answering"]), name="turn_active"
            ),
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
    def has_room(self) -> bool:
        """Return whether there is a partial answer below the length limit, which can be resumed."""
        return bool(self.answer.strip()) and len(self.answer) < settings.CATO.chat.max_answer_chars

    @property
    def effective_exchange_id(self) -> uuid.UUID | None:
        """The exchange of this turn, or of the turn of which it is a copy."""
        return self.exchange_id or self.copied_exchange_id


def load_attachments(turns: Iterable[Turn]) -> None:
    """Load the attachments of these turns (read `with_attachment_marks`) with one query, or none if there are none."""
    models.prefetch_related_objects([turn for turn in turns if getattr(turn, "has_attachments", True)], "attachments")


class InstructionQuerySet(models.QuerySet["Instruction"]):
    """Queries of instructions."""

    def present(self) -> InstructionQuerySet:
        """Return the instructions that were neither dismissed nor forgotten with their message."""
        forgotten = Exchange.objects.filter(id=OuterRef("turn__exchange_id")).exclude(forgotten_at=None)
        return self.exclude(state=Instruction.State.DISMISSED).filter(~Exists(forgotten))


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


class Endpoint(models.Model):
    """The model endpoint of the settings page, with an encrypted API key."""

    base_url = models.URLField(max_length=300, blank=True)
    encrypted_key = models.BinaryField(default=b"")
    model = models.CharField(max_length=120, blank=True)
    changed_at = models.DateTimeField(auto_now=True)


class ImportJob(Job):
    """An import of a file of conversations, with its progress and counts.

    The file is deleted when the import ends. The counts are those of `chat.imports.importer.ImportReport`.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    file = models.FileField(upload_to=place_of_import, max_length=120, blank=True)
    name = models.CharField(max_length=255, help_text="original name of the file")
    total = models.PositiveIntegerField(null=True, help_text="number of conversations in the file, once counted")
    read = models.PositiveIntegerField(default=0, help_text="number of processed conversations")
    found = models.PositiveIntegerField(default=0)
    imported = models.PositiveIntegerField(default=0)
    already_there = models.PositiveIntegerField(default=0)
    turns = models.PositiveIntegerField(default=0)
    skipped_count = models.PositiveIntegerField(default=0)
    skipped = models.JSONField(default=list, help_text="titles of skipped conversations with reasons")
    left_out = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-created_at"]),
            models.Index(fields=["due_at"], condition=Q(state="pending"), name="import_due"),
        ]

    @property
    def is_under_way(self) -> bool:
        """Return whether the import is due or running."""
        return self.state == self.State.PENDING
