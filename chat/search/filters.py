"""Filters of the search page: space, person, dates, type, thread, document and similarity."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from datetime import date
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from chat import access
from chat.search.operators import Resolved, resolve_choice, resolve_date, said_between
from chat.search.query import SearchQuery
from memory import api as memory
from memory.api import DATE_INPUT, Exchange, Filter, InvalidInputError, LongSelect, Phrase, all_of, parse_filter

SOURCES_OF_TYPES = {
    "said": ["chat", "import", "api", "cli"],
    "noted": ["vadd_command"],
    "documents": ["upload", "vdoc_command"],
    "knowledge": ["knowledge"],
}
TYPE_CHOICES: list[tuple[Any, Any]] = [
    ("said", gettext_lazy("Said")),
    ("noted", gettext_lazy("Noted")),
    ("documents", gettext_lazy("Documents")),
    ("knowledge", gettext_lazy("Knowledge")),
]
_SIMILARITIES = ("0.8", "0.85", "0.9")
# Threads and documents in a menu: the newest ones, and the one that is chosen.
_MAX_CHOICES = 100
# Threads, the newest ones, among whose titles `thread:` looks for a name.
_MAX_TITLES = 10_000
# Phrases and excluded words of a query: each is a search through the text of every candidate.
_MAX_PHRASES = 20
_FIELD_OF = {"from": "who", "in": "space", "since": "since", "before": "until", "type": "type", "thread": "thread"}


# What searches for more: without the filters of these fields.
REMOVALS = [
    (gettext_lazy("From anyone"), ["who"]),
    (gettext_lazy("In all spaces"), ["space"]),
    (gettext_lazy("Any date"), ["since", "until"]),
    (gettext_lazy("Any type"), ["type"]),
    (gettext_lazy("Any thread"), ["thread"]),
    (gettext_lazy("Any document"), ["document"]),
    (gettext_lazy("Any similarity"), ["similarity"]),
]


class SearchFilters(forms.Form):
    """The filters of one search; an empty field does not filter."""

    space = forms.ChoiceField(required=False, label=gettext_lazy("Space"))
    who = forms.ChoiceField(required=False, label=gettext_lazy("Who"), widget=LongSelect)
    since = forms.DateField(required=False, widget=DATE_INPUT, label=gettext_lazy("From"))
    until = forms.DateField(required=False, widget=DATE_INPUT, label=gettext_lazy("Until"))
    type = forms.ChoiceField(
        choices=[("", gettext_lazy("Any type")), *TYPE_CHOICES], required=False, label=gettext_lazy("Type")
    )
    thread = forms.ChoiceField(required=False, label=gettext_lazy("Thread"), widget=LongSelect)
    document = forms.ChoiceField(required=False, label=gettext_lazy("Document"), widget=LongSelect)
    similarity = forms.ChoiceField(required=False, label=gettext_lazy("Similarity"))

    def __init__(self, data: Mapping[str, Any], *, query: SearchQuery, person_id: uuid.UUID) -> None:
        """Take the values from `data`, and those of the operators in `query` before them."""
        self.person_id = person_id
        self.readable = memory.readable_space_ids(person_id)
        self._errors_of_operators: dict[str, str] = {}
        self._values = {name: str(data.get(name) or "") for name in self.base_fields}
        super().__init__(self._values)
        # Only authors of something readable: other names are not shown to everybody.
        written = memory.in_spaces(Exchange.objects.findable().filter(owner=OuterRef("pk")), self.readable)
        authors = get_user_model().objects.filter(Exists(written)).order_by("name", "pk")
        people = list(authors.values_list("pk", "name"))
        threads = access.readable_threads(person_id).order_by("-last_message_at", "-id")
        documents = memory.active_documents(self.readable).order_by("-created_at", "-id")
        spaces = [(space.pk, space.display_name) for space in memory.list_readable_spaces(person_id)]
        choices: dict[str, list[tuple[Any, Any]]] = {"in": spaces, "type": TYPE_CHOICES}
        for operator, typed in query.operators.items():
            if operator in ("since", "before"):
                self._apply(operator, resolve_date(operator, typed))
                continue
            if operator == "from":
                me = [(id, word) for id, _name in people if id == person_id for word in ("me", _("me"))]
                choices["from"] = [*people, *me]
            elif operator == "thread":
                id = memory.parse_uuid(typed)
                named = threads.filter(pk=id) if id else threads
                choices["thread"] = list(named.values_list("pk", "title")[:_MAX_TITLES])
            self._apply(operator, resolve_choice(operator, typed, choices[operator]))
        for operator in query.negated_operators:
            sentence = _("-%(operator)s: is not supported. Only words and phrases can be excluded; remove the minus.")
            self._apply(operator, Resolved(error=sentence % {"operator": operator}))
        self._offer("who", _("Anyone"), people)
        self._offer("space", _("All spaces"), spaces)
        newest = memory.newest_in_spaces(threads, self.readable, _MAX_CHOICES, by="last_message_at")
        self._offer("thread", _("Any thread"), self._newest("thread", "title", newest, threads))
        self._offer("document", _("Any document"), self._newest("document", "name", documents, documents))
        shown = [(value, _("Similarity ≥ %s") % memory.format_similarity(float(value))) for value in _SIMILARITIES]
        self._offer("similarity", _("Any similarity"), shown)
        for field in self.fields.values():
            field.widget.attrs["form"] = "search-form"

    @property
    def set_fields(self) -> list[str]:
        """Return the names of the fields with a value, in order."""
        return [name for name in self.fields if self._values[name]]

    @property
    def can_list(self) -> bool:
        """Return True if a field is set that selects exchanges without words to search for; similarity does not."""
        return bool(set(self.set_fields) - {"similarity"})

    @property
    def spaces(self) -> memory.SpaceIds:
        """Return the spaces to search: the chosen one, or all that the person can read."""
        chosen = self.cleaned_data["space"]
        return self.readable & {uuid.UUID(chosen)} if chosen else self.readable

    @property
    def min_similarity(self) -> float | None:
        """Return the least similarity of a hit, None without one."""
        chosen = self.cleaned_data["similarity"]
        return float(chosen) if chosen else None

    def without(self, names: Collection[str]) -> SearchFilters:
        """Return the valid form without the values of these fields."""
        values = {key: value for key, value in self._values.items() if key not in names}
        form = SearchFilters(values, query=SearchQuery("", ""), person_id=self.person_id)
        form.is_valid()
        return form

    def clean(self) -> dict[str, Any]:
        """Report operators that name nothing, or more than one thing."""
        for name, error in self._errors_of_operators.items():
            self.add_error(name, error)
        return self.cleaned_data

    def condition(self, query: SearchQuery) -> Filter | None:
        """Return the condition on exchanges, None without one. The days are those of the server's time zone.

        Raises InvalidInputError for a query of too many phrases and excluded words.
        """
        if len(query.phrases) + len(query.excluded) > _MAX_PHRASES:
            error = _("A search can have at most %(most)s phrases in quotes and excluded words. Remove some of them.")
            raise InvalidInputError(error % {"most": _MAX_PHRASES})
        fields = self.cleaned_data
        conditions: dict[str, object] = {}
        if fields["who"]:
            conditions["said_by"] = fields["who"]
        if fields["type"]:
            conditions["source"] = {"$in": SOURCES_OF_TYPES[fields["type"]]}
        if fields["thread"]:
            conditions["thread"] = fields["thread"]
        if times := said_between(fields["since"], fields["until"]):
            conditions["said"] = times
        return all_of(
            parse_filter(conditions) if conditions else None,
            memory.build_recall_filter([fields["document"]], {}, spaces=self.readable).filter(),
            *(Phrase(phrase) for phrase in query.phrases),
            *(Phrase(excluded, negated=True) for excluded in query.excluded),
        )

    def descriptions(self) -> dict[str, str]:
        """Return, by field, what each filter adds to a sentence such as "Nothing … matches"."""
        fields = self.cleaned_data
        sentences = {
            "who": _("from %(value)s"),
            "space": _("in %(value)s"),
            "since": _("since %(value)s"),
            "until": _("until %(value)s"),
            "type": _("of the type %(value)s"),
            "thread": _("in the thread %(value)s"),
            "document": _("in the document %(value)s"),
            "similarity": _("with a %(value)s"),
        }
        return {name: sentences[name] % {"value": self._label(name, fields[name])} for name in self.set_fields}

    def _label(self, name: str, value: Any) -> str:
        if isinstance(value, date):
            return memory.format_date(value)
        return str(dict(self.fields[name].choices)[value])  # type: ignore[attr-defined]

    def _apply(self, operator: str, resolved: Resolved) -> None:
        name = _FIELD_OF[operator]
        self._values[name] = resolved.value
        if resolved.error:
            self._errors_of_operators[name] = resolved.error

    def _offer(self, name: str, empty: str, choices: Iterable[tuple[Any, str]]) -> None:
        offered = [("", empty), *((str(id), label) for id, label in choices)]
        self.fields[name].choices = offered  # type: ignore[attr-defined]

    def _newest(self, name: str, label: str, newest: QuerySet[Any], rows: QuerySet[Any]) -> list[tuple[uuid.UUID, str]]:
        """Return the ids and labels of the newest rows, and of the chosen one."""
        offered = list(newest.values_list("pk", label)[:_MAX_CHOICES])
        chosen = memory.parse_uuid(self._values[name])
        if chosen and chosen not in {id for id, _label in offered}:
            offered += rows.filter(pk=chosen).values_list("pk", label)
        return offered
