"""Page of the retention rules, with a preview of what they would forget."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from memory.administration import operations, retention
from memory.models import Exchange, Operation
from memory.text import parse_number
from memory.utils.formatting import SOURCES, format_list, format_number
from memory.views.administration.shared import start_operation
from memory.views.http import PageRequest, admin_required

_MAX_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class RuleRow:
    """The rule of one source: its days ("" forever), and what it would forget now ("" without a preview)."""

    source: str
    label: str
    days: str
    error: str
    affected: str


@admin_required
@require_http_methods(["GET", "POST"])
def rules(request: PageRequest) -> HttpResponse:
    """Show the rules; a POST previews new ones, and a POST of what was previewed saves and applies them."""
    if request.method == "GET":
        days = {source: str(count) for source, count in retention.get_rules().items()}
        return _page(request, days)
    days = {source: request.POST.get(source, "").strip() for source in Exchange.Source.values}
    errors = {source: error for source, text in days.items() if (error := _error_in(text))}
    if errors:
        return _page(request, days, errors=errors, status=422)
    new_rules = {source: int(text) for source, text in days.items() if text}
    if (previewed := request.POST.get("previewed")) != urlencode(days):
        if previewed:
            messages.error(request, _("The days were changed after the preview. Check what they affect, then save."))
        return _page(request, days, affected=retention.preview(new_rules))
    retention.save_rules(new_rules, by=request.user.pk)
    if not new_rules:
        messages.success(request, _("Retention disabled."))
        return redirect("admin_retention")
    create = partial(
        operations.create_operation, Operation.Kind.RETENTION, by=request.user.pk, parameters={"days": new_rules}
    )
    return start_operation(request, create, list_page="admin_retention")


def _page(
    request: PageRequest,
    days: dict[str, str],
    *,
    errors: dict[str, str] | None = None,
    affected: dict[str, tuple[int, int]] | None = None,
    status: int = 200,
) -> HttpResponse:
    rows = [
        RuleRow(
            source=source,
            label=str(label),
            days=days.get(source, ""),
            error=(errors or {}).get(source, ""),
            affected=_affected_text(*affected[source]) if affected and source in affected else "",
        )
        for source, label in SOURCES.items()
    ]
    context = {
        "section": "admin",
        "tab": "retention",
        "rows": rows,
        # Sent back with the days: only what was counted is saved.
        "previewed": "" if affected is None else urlencode(days),
    }
    return render(request, "memory/admin_retention.html", context, status=status)


def _error_in(text: str) -> str:
    """Return the error in a number of days, "" if it is valid."""
    if not text or 1 <= (parse_number(text) or 0) <= _MAX_DAYS:
        return ""
    sentence = _("A whole number of days from 1 to %(most)s, or nothing to keep it forever.")
    return sentence % {"most": format_number(_MAX_DAYS)}


def _affected_text(exchanges: int, documents: int) -> str:
    parts = []
    if exchanges or not documents:
        parts.append(
            ngettext("%(count)s exchange", "%(count)s exchanges", exchanges) % {"count": format_number(exchanges)}
        )
    if documents:
        parts.append(
            ngettext("%(count)s document", "%(count)s documents", documents) % {"count": format_number(documents)}
        )
    return format_list(parts)
