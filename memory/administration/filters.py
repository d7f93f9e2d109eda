"""Filter exchanges and documents for administrators: by person, source, date, state, space and size.

Text is searched only in the spaces that the administrator may read.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import django_filters as filters
from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.forms import BoundField
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from memory.index import generations
from memory.lexical.analyser import query_terms
from memory.lexical.postings import rows_with_all_terms
from memory.models import Chunk, Document, DocumentVersion, EmbeddingJob, Exchange, Job, Space
from memory.spaces.access import SpaceIds, in_spaces
from memory.text import clean_text
from memory.utils.formatting import SOURCES
from memory.utils.lookups import contains
from memory.utils.widgets import DATE_INPUT, LongSelect

Stage = DocumentVersion.Stage
# Nothing is stored outside, and these can be converted to any time zone.
_FIRST_DAY, _LAST_DAY = date(1900, 1, 1), date(9998, 12, 31)
# Choice that stands for all personal spaces.
OWN = "own"
_STATES = {"remembered": Job.State.DONE, "waiting": Job.State.PENDING, "failed": Job.State.FAILED}
_DOCUMENT_STATES = {"ready": [Stage.READY], "under_way": DocumentVersion.UNDER_WAY, "failed": [Stage.FAILED]}


def _people(request: object) -> QuerySet[Any]:
    return get_user_model()._default_manager.filter(left_at=None).order_by("name", "pk")


def _spaces() -> list[tuple[str, str]]:
    shared = Space.objects.exclude(kind=Space.Kind.PERSONAL).order_by("kind", "name")
    return [(OWN, gettext("People’s own")), *((str(space.pk), space.display_name) for space in shared)]


class DayFilter(filters.DateFilter):  # type: ignore[misc]
    """A first or, with the expression `lte`, a last day, compared as a moment: of a date, no index is used."""

    def filter(self, rows: QuerySet[Any], value: date | None) -> QuerySet[Any]:
        """Return the rows since the beginning or until the end of this day."""
        if value:
            day = min(max(value, _FIRST_DAY), _LAST_DAY)
            value = timezone.make_aware(datetime.combine(day, time.max if self.lookup_expr == "lte" else time.min))
        found: QuerySet[Any] = super().filter(rows, value)
        return found


class ListFilterSet(filters.FilterSet):  # type: ignore[misc]
    """The filters of a list, some of them in the first row of the form."""

    # Filters in the first row.
    common: tuple[str, ...] = ("q",)
    # Filters that are set by links, and shown only if set.
    hidden: tuple[str, ...] = ()

    @property
    def is_set(self) -> bool:
        """Return True if the filters are valid and at least one is set."""
        return self.is_valid() and any(self.form.cleaned_data.values())

    @property
    def rare_fields(self) -> list[BoundField]:
        """Return the fields outside the first row."""
        rare = [field for field in self.form if field.name not in self.common]
        return [field for field in rare if field.value() or field.name not in self.hidden]

    @property
    def has_rare(self) -> bool:
        """Return True if a filter outside the first row has a value, valid or not."""
        return any(field.value() for field in self.rare_fields)


class AdminFilterSet(ListFilterSet):
    """A filter set that searches text only in `visible_spaces`."""

    def __init__(self, data: Mapping[str, Any] | None, rows: QuerySet[Any], *, visible_spaces: SpaceIds) -> None:
        self.visible_spaces = visible_spaces
        super().__init__(data, rows)

    q = filters.CharFilter(method="filter_text", label=_("Words, or an id"))
    person = filters.ModelChoiceFilter(
        field_name="owner", queryset=_people, empty_label=_("Anyone"), label=_("Who"), widget=LongSelect
    )
    space = filters.ChoiceFilter(
        choices=_spaces, method="filter_space", empty_label=_("All spaces"), label=_("Space"), widget=LongSelect
    )

    common = ("q", "person", "space", "source")
    hidden = ("thread", "document")

    @property
    def actionable_rows(self) -> QuerySet[Any]:
        """Return the rows for an action; none if a filter is invalid, because ignoring it would select more rows."""
        rows: QuerySet[Any] = self.qs if self.is_valid() else self.queryset.none()
        return rows

    def filter_text(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Return the rows that match the text; subclasses define how."""
        raise NotImplementedError

    def filter_space(self, rows: QuerySet[Any], name: str, value: str) -> QuerySet[Any]:
        """Return the rows of one space, or of all personal spaces."""
        if value == OWN:
            return rows.filter(space__kind=Space.Kind.PERSONAL)
        return rows.filter(space_id=uuid.UUID(value))


class ExchangeFilterSet(AdminFilterSet):
    """Filters for exchanges that are not forgotten."""

    source = filters.ChoiceFilter(choices=list(SOURCES.items()), empty_label=_("Any source"), label=_("Source"))
    since = DayFilter(field_name="timestamp", lookup_expr="gte", widget=DATE_INPUT, label=_("From"))
    until = DayFilter(field_name="timestamp", lookup_expr="lte", widget=DATE_INPUT, label=_("Until"))
    state = filters.ChoiceFilter(
        choices=[
            ("remembered", _("Remembered")),
            ("waiting", _("Waiting")),
            ("failed", _("Failed")),
            ("none", _("Not in the index")),
        ],
        method="filter_state",
        empty_label=_("Any state"),
        label=_("State"),
    )
    least = filters.NumberFilter(field_name="size", lookup_expr="gte", label=_("Characters, at least"))
    most = filters.NumberFilter(field_name="size", lookup_expr="lte", label=_("Characters, at most"))
    thread = filters.UUIDFilter(field_name="thread_id", label=_("Thread"))
    document = filters.UUIDFilter(method="filter_document", label=_("Document"))

    def filter_text(self, rows: QuerySet[Exchange], name: str, value: str) -> QuerySet[Exchange]:
        """Return the exchange with this id, or the exchanges in `visible_spaces` that contain all these words."""
        text = clean_text(value).strip()
        try:
            return rows.filter(pk=uuid.UUID(text))
        except ValueError:
            terms = query_terms(text)
        texts = rows_with_all_terms(terms).values("exchange_id")
        # Checked for each text that is found; with a condition on the column, SQLite would read all texts of the spaces.
        visible = Space.objects.filter(pk=OuterRef("space"), pk__in=list(self.visible_spaces))
        return rows.filter(Exists(visible), pk__in=texts) if terms else rows.none()

    def filter_state(self, rows: QuerySet[Exchange], name: str, value: str) -> QuerySet[Exchange]:
        """Return the exchanges in this state in the active generation."""
        embedding_jobs = EmbeddingJob.objects.filter(generation=generations.active_generation())
        if value == "remembered":  # nearly all, so they are not collected first
            return rows.filter(Exists(embedding_jobs.filter(state=_STATES[value], exchange=OuterRef("pk"))))
        if value in _STATES:
            return rows.filter(pk__in=embedding_jobs.filter(state=_STATES[value]).values("exchange_id"))
        return rows.exclude(Exists(embedding_jobs.filter(exchange=OuterRef("pk"))))

    def filter_document(self, rows: QuerySet[Exchange], name: str, value: uuid.UUID) -> QuerySet[Exchange]:
        """Return the exchanges that are chunks of this document."""
        return rows.filter(pk__in=Chunk.objects.filter(version__document_id=value).values("exchange_id"))


class DocumentFilterSet(AdminFilterSet):
    """Filters for documents that are not deleted."""

    since = DayFilter(field_name="created_at", lookup_expr="gte", widget=DATE_INPUT, label=_("Added from"))
    until = DayFilter(field_name="created_at", lookup_expr="lte", widget=DATE_INPUT, label=_("Added until"))
    state = filters.ChoiceFilter(
        choices=[("ready", _("Remembered")), ("under_way", _("In progress")), ("failed", _("Not added"))],
        method="filter_state",
        empty_label=_("Any state"),
        label=_("State"),
    )

    def filter_text(self, rows: QuerySet[Document], name: str, value: str) -> QuerySet[Document]:
        """Return the document with this id, or the documents in `visible_spaces` whose name contains this text."""
        text = clean_text(value).strip()
        try:
            return rows.filter(pk=uuid.UUID(text))
        except ValueError:
            return in_spaces(rows.filter(contains("name", text)), self.visible_spaces)

    def filter_state(self, rows: QuerySet[Document], name: str, value: str) -> QuerySet[Document]:
        """Return the documents in this state."""
        versions = DocumentVersion.objects.filter(stage__in=_DOCUMENT_STATES[value])
        return rows.filter(pk__in=versions.values("document_id"))


def exchanges(data: Mapping[str, Any] | None, *, visible_spaces: SpaceIds) -> ExchangeFilterSet:
    """Return the filtered exchanges, newest first, including those of inactive branches.

    Chunks of old versions are excluded. Text is searched only in `visible_spaces`.
    """
    old_chunks = Q(is_inactive=True, total_chunks__isnull=False)
    rows = Exchange.objects.filter(forgotten_at=None).exclude(old_chunks).order_by("-timestamp", "id")
    return ExchangeFilterSet(data, rows, visible_spaces=visible_spaces)


def documents(data: Mapping[str, Any] | None, *, visible_spaces: SpaceIds) -> DocumentFilterSet:
    """Return the filtered documents, newest first; names are searched only in `visible_spaces`."""
    rows = Document.objects.filter(forgotten_at=None).order_by("-created_at", "id")
    return DocumentFilterSet(data, rows, visible_spaces=visible_spaces)
