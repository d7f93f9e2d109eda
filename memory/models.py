"""What memory keeps in SQL: spaces, exchanges, where their vectors are, and what was recalled for whom."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q


class Space(models.Model):
    """Who may see something: one person, a group, or the team."""

    class Kind(models.TextChoices):
        OWN = "own", "Only you"
        GROUP = "group", "Group"
        TEAM = "team", "Everyone"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=5, choices=Kind.choices)
    name = models.CharField(max_length=80, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    members: models.ManyToManyField[models.Model, Membership] = models.ManyToManyField(
        settings.AUTH_USER_MODEL, through="Membership", related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["owner"], condition=Q(kind="own"), name="one_own_space_a_person"),
            models.UniqueConstraint(fields=["kind"], condition=Q(kind="team"), name="one_team_space"),
            models.CheckConstraint(
                condition=Q(kind="own", owner__isnull=False) | Q(owner__isnull=True) & ~Q(kind="own"),
                name="only_own_spaces_have_an_owner",
            ),
        ]


class Membership(models.Model):
    """A person in a group's space."""

    space = models.ForeignKey(Space, on_delete=models.CASCADE)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["space", "person"], name="in_a_group_once")]


class Exchange(models.Model):
    """One message and its answer, or a note or a piece of a document: the unit of memory.

    A forgotten exchange stays as a row without text (`forgotten_at`, then `erased_at` when its vectors, its cached
    embedding and its words are verified to be gone), so that nothing brings it back.
    """

    class Source(models.TextChoices):
        CHAT = "chat"
        VADD = "vadd_command"
        VDOC = "vdoc_command"
        UPLOAD = "upload"
        CLI = "cli"
        IMPORT = "import"
        API = "api"

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
        help_text="what was said before it in its session, or the piece before it of the same text",
    )
    turn_id = models.UUIDField(null=True, unique=True)
    thread_continuation_seq = models.PositiveIntegerField(default=0)
    user_message = models.TextField()
    assistant_message = models.TextField(blank=True)
    timestamp = models.DateTimeField(help_text="when it was said, UTC")
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
    version = models.PositiveIntegerField(default=1, help_text="rises when the text changes; part of the vector ids")
    forgotten_at = models.DateTimeField(null=True)
    forgotten_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    erased_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(fields=["space", "-timestamp"]),
            models.Index(fields=["forgotten_at"], condition=Q(erased_at=None), name="exchange_to_erase"),
        ]

    @property
    def thread_session_id(self) -> str | None:
        return f"{self.thread_id}_{self.session_id}" if self.thread_id else None


class Generation(models.Model):
    """All indexes made with one embedding model; one serves, another may be built beside it."""

    class State(models.TextChoices):
        BUILDING = "building"
        SERVING = "serving"
        RETIRED = "retired"

    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=255)
    dimension = models.PositiveIntegerField(null=True, help_text="known once the model answered")
    state = models.CharField(max_length=8, choices=State.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["state"], condition=Q(state="serving"), name="one_serving_generation"),
            models.UniqueConstraint(fields=["state"], condition=Q(state="building"), name="one_building_generation"),
        ]


class Index(models.Model):
    """One collection of vectors: a space in a generation."""

    space = models.ForeignKey(Space, on_delete=models.PROTECT)
    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="indexes")
    collection = models.CharField(max_length=128, unique=True)
    soiled_at = models.DateTimeField(
        null=True, help_text="since when its files may hold vectors of what was forgotten; null: they hold none"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["space", "generation"], name="one_index_a_space")]


class Job(models.Model):
    """A piece of work as a row: due at a time, held by a lease, fenced by its attempt number."""

    class State(models.TextChoices):
        PENDING = "pending"
        DONE = "done"
        FAILED = "failed"

    state = models.CharField(max_length=7, choices=State.choices, default=State.PENDING)
    attempt = models.PositiveIntegerField(
        default=0, help_text="rises at every claim; a late write of an older one is void"
    )
    due_at = models.DateTimeField()
    locked_until = models.DateTimeField(null=True)
    failures = models.PositiveSmallIntegerField(default=0, help_text="how often the work itself failed")
    error = models.CharField(max_length=300, blank=True)

    class Meta:
        abstract = True


class Embedding(Job):
    """The vectors of one exchange in one generation: still to be made, or in `index`."""

    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="embeddings")
    generation = models.ForeignKey(Generation, on_delete=models.CASCADE, related_name="embeddings")
    index = models.ForeignKey(Index, null=True, on_delete=models.PROTECT, related_name="embeddings")
    version = models.PositiveIntegerField(default=0, help_text="the exchange's version that is in the index")
    parts = models.PositiveSmallIntegerField(default=0, help_text="how many vectors that version has there")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["exchange", "generation"], name="embedded_once_a_generation")]
        indexes = [models.Index(fields=["due_at"], condition=Q(state="pending"), name="embedding_due")]


class Erasure(Job):
    """The rest of a forgetting: vectors, cached embedding and text still to be removed and verified gone."""

    exchange = models.OneToOneField(Exchange, on_delete=models.CASCADE, related_name="erasure")

    class Meta:
        indexes = [models.Index(fields=["due_at"], condition=Q(state="pending"), name="erasure_due")]


class CachedEmbedding(models.Model):
    """The vectors of a text, kept as long as an exchange says that text."""

    content_hash = models.CharField(max_length=64)
    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=255)
    vectors = models.BinaryField(help_text="float32, parts x dimension")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["content_hash", "provider", "model"], name="cached_once_a_model")
        ]


class Words(models.Model):
    """The words of an exchange as the analyser writes them; a full-text index stands beside (migration 0002)."""

    exchange = models.OneToOneField(Exchange, on_delete=models.CASCADE, related_name="words")
    space = models.ForeignKey(Space, on_delete=models.PROTECT, related_name="+")
    terms = models.TextField(help_text="in their order, separated by spaces")
    length = models.PositiveIntegerField(db_index=True, help_text="how many they are")


class MetadataValue(models.Model):
    """One scalar of an exchange's free metadata, as filters look for it; a list has a row for each member."""

    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="metadata_values")
    key = models.CharField(max_length=100)
    is_member = models.BooleanField(default=False, help_text="one of a list")
    text = models.CharField(max_length=500, null=True)
    number = models.FloatField(null=True)
    truth = models.BooleanField(null=True)

    class Meta:
        indexes = [models.Index(fields=["key", "text"]), models.Index(fields=["key", "number"])]


class Record(models.Model):
    """An exchange that another program keeps here under a name of its own, perhaps with a vector of its own."""

    exchange = models.OneToOneField(Exchange, on_delete=models.CASCADE, related_name="record")
    space = models.ForeignKey(Space, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=255)
    vector = models.BinaryField(null=True, help_text="float32, as given; null: embedded from the text")
    generation = models.ForeignKey(
        Generation,
        null=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="the index the vector is meant for",
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["space", "name"], name="one_record_of_a_name")]


class Opinion(models.Model):
    """What a person thinks of an exchange that was recalled for them."""

    class Kind(models.TextChoices):
        PINNED = "pinned", "always in the running"
        IRRELEVANT = "irrelevant", "never again for this person"

    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="opinions")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "exchange"], name="one_opinion_an_exchange")]


class Calibration(models.Model):
    """The gate that was fitted on this store for one embedding model."""

    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=255)
    threshold = models.FloatField()
    sample = models.PositiveIntegerField(help_text="exchanges it was fitted on")
    at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["provider", "model"], name="one_calibration_a_model")]


class Evaluation(models.Model):
    """One run of memory_eval for one strategy."""

    run = models.UUIDField(help_text="the strategies measured together")
    at = models.DateTimeField(auto_now_add=True)
    strategy = models.CharField(max_length=40)
    questions = models.PositiveIntegerField()
    asked_by = models.CharField(max_length=255, help_text="the chat model that put them in other words, or how else")
    k = models.PositiveSmallIntegerField()
    recall = models.FloatField(help_text="share of questions whose exchange was among the first k")
    empty = models.FloatField(help_text="share of questions for which the gate let nothing through")
    median_ms = models.FloatField()


class Recall(models.Model):
    """That an exchange was used for a turn, and why; never its text."""

    turn_id = models.UUIDField()
    exchange = models.ForeignKey(Exchange, on_delete=models.CASCADE, related_name="recalls")
    rank = models.PositiveSmallIntegerField()
    similarity = models.FloatField(null=True)
    score = models.FloatField()
    strategy = models.CharField(max_length=40)
    reason = models.CharField(max_length=300)
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["turn_id", "exchange"], name="recalled_once_a_turn")]
