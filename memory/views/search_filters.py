"""Filters of the search page: author, source, space and dates."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.db.models import Exists, OuterRef
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from memory.filters import Filter, parse_filter
from memory.models import Exchange
from memory.spaces import access
from memory.utils.formatting import SOURCES

_DATE_INPUT = forms.DateInput(attrs={"type": "date"})


class SearchFilters(forms.Form):
    """The filters of one search; an empty field does not filter."""

    who: forms.ModelChoiceField[Any] = forms.ModelChoiceField(
        queryset=None, required=False, empty_label=_("Anyone"), label=_("Who")
    )
    source = forms.ChoiceField(choices=[("", _("Any source")), *SOURCES.items()], required=False, label=_("Source"))
    space = forms.ChoiceField(required=False, label=_("Space"))
    since = forms.DateField(required=False, widget=_DATE_INPUT, label=_("From"))
    until = forms.DateField(required=False, widget=_DATE_INPUT, label=_("Until"))

    def __init__(self, data: Mapping[str, Any], *, person_id: uuid.UUID) -> None:
        super().__init__(data)
        for field in self.fields.values():
            field.widget.attrs["form"] = "search-form"
        self._readable = access.readable_space_ids(person_id)
        # Only authors of something readable: other names are not shown to everybody.
        written = access.in_spaces(Exchange.objects.findable().filter(owner=OuterRef("pk")), self._readable)
        authors = get_user_model().objects.filter(Exists(written)).order_by("name", "pk")
        self.fields["who"].queryset = authors  # type: ignore[attr-defined]
        spaces = [(str(space.pk), space.display_name) for space in access.list_readable_spaces(person_id)]
        self.fields["space"].choices = [("", _("All spaces")), *spaces]  # type: ignore[attr-defined]

    @property
    def is_set(self) -> bool:
        """Return True if at least one field has a value, valid or not."""
        return any(field.value() for field in self)

    @property
    def spaces(self) -> access.SpaceIds:
        """Return the spaces to search: the chosen one, or all that the person can read."""
        chosen = self.cleaned_data["space"]
        return self._readable & {uuid.UUID(chosen)} if chosen else self._readable

    def condition(self) -> Filter | None:
        """Return the condition on exchanges, None without one. The days are those of the server's time zone."""
        fields = self.cleaned_data
        conditions: dict[str, object] = {}
        if fields["who"]:
            conditions["said_by"] = str(fields["who"].pk)
        if fields["source"]:
            conditions["source"] = fields["source"]
        days = {"$gte": fields["since"], "$lt": fields["until"] and fields["until"] + timedelta(days=1)}
        if times := {operator: _midnight(day) for operator, day in days.items() if day}:
            conditions["said"] = times
        return parse_filter(conditions) if conditions else None


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))
