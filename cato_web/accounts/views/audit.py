"""The audit log as a page."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

import django_filters as filters
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import capfirst
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET

from cato_web.accounts.audit_targets import TargetPart, target_parts, token_texts
from cato_web.accounts.models import AuditEntry, User
from memory.api import DATE_INPUT, ListFilterSet, LongPaginator, LongSelect, PageRequest, admin_required, contains

_PAGE = 100


@dataclass(frozen=True, slots=True)
class AuditRow:
    """An audit entry with current names instead of ids; `token`: the API token through which a program acted."""

    at: datetime
    actor: str
    action: str
    target: list[TargetPart]
    token: str


def _actions() -> list[tuple[str, str]]:
    """Return the actions that occur in the log, sorted by label."""
    labels = dict(AuditEntry.Action.choices)
    codes = AuditEntry.objects.order_by("action").values_list("action", flat=True).distinct()
    return sorted(((code, capfirst(str(labels.get(code, code)))) for code in codes), key=lambda choice: choice[1])


class AuditSelection(ListFilterSet):
    """Filters of the audit log."""

    q = filters.CharFilter(method="filter_text", label=_("Target"))
    who = filters.ModelChoiceFilter(
        field_name="actor",
        queryset=User.objects.order_by("name", "pk"),
        empty_label=_("Anyone"),
        label=_("Who"),
        widget=LongSelect,
    )
    action = filters.ChoiceFilter(choices=_actions, empty_label=_("Anything"), label=_("What"))
    since = filters.DateFilter(field_name="at", lookup_expr="date__gte", widget=DATE_INPUT, label=_("From"))
    until = filters.DateFilter(field_name="at", lookup_expr="date__lte", widget=DATE_INPUT, label=_("Until"))

    common = ("q", "who", "action")

    def filter_text(self, rows: QuerySet[AuditEntry], name: str, value: str) -> QuerySet[AuditEntry]:
        """Return the entries that are about something with this text."""
        return rows.filter(contains("target", value))


@admin_required
@require_GET
def audit(request: PageRequest) -> HttpResponse:
    """Show the filtered entries, newest first."""
    entries: QuerySet[AuditEntry] = AuditEntry.objects.select_related("actor").order_by("-at", "-pk")
    selection = AuditSelection(request.GET, entries)
    page = LongPaginator(selection.qs, _PAGE).get_page(request.GET.get("page"))
    rows = _rows(list(page), request.user.pk)
    context = {"section": "admin", "tab": "audit", "selection": selection, "page": page, "rows": rows}
    return render(request, "people/admin_audit.html", context)


def _rows(entries: list[AuditEntry], viewer_id: uuid.UUID) -> list[AuditRow]:
    return [
        AuditRow(
            at=entry.at,
            actor=str(entry.actor) if entry.actor else "Cato",
            action=entry.get_action_display(),
            target=parts,
            token=token,
        )
        for entry, parts, token in zip(
            entries, target_parts(entries, viewer_id), token_texts(entries, viewer_id), strict=True
        )
    ]
