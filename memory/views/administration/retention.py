"""For how long what is said is kept: by source, counted before it is put in force."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from memory.administration import operations, retention
from memory.errors import InvalidInputError
from memory.models import Exchange, Operation
from memory.utils.formatting import SOURCES, format_list, format_number
from memory.views.http import PageRequest, admin_required

_LONGEST = 36_500


@dataclass(frozen=True, slots=True)
class RuleRow:
    """A source: for how many days it is kept ("" for ever), and what that would take now ("" where not asked)."""

    source: str
    label: str
    days: str
    error: str
    would_go: str


@admin_required
@require_http_methods(["GET", "POST"])
def rules(request: PageRequest) -> HttpResponse:
    """The rules in force; by POST what others would take, and once that was seen they are set and applied."""
    if request.method == "GET":
        days = {source: str(count) for source, count in retention.get_rules().items()}
        return _page(request, days)
    days = {source: request.POST.get(source, "").strip() for source in Exchange.Source.values}
    errors = {source: error for source, text in days.items() if (error := _wrong(text))}
    if errors:
        return _page(request, days, errors=errors, status=422)
    wanted = {source: int(text) for source, text in days.items() if text}
    if request.POST.get("confirmed") != "yes":
        return _page(request, days, would_go=retention.preview(wanted))
    retention.save_rules(wanted, by=request.user.pk)
    if not wanted:
        messages.success(request, _("Retention disabled."))
        return redirect("admin_retention")
    try:
        begun = operations.create_operation(Operation.Kind.RETENTION, by=request.user.pk, parameters={"days": wanted})
    except InvalidInputError as error:
        messages.error(request, str(error))
        return redirect("admin_retention")
    return redirect("admin_operation", begun.pk)


def _page(
    request: PageRequest,
    days: dict[str, str],
    *,
    errors: dict[str, str] | None = None,
    would_go: dict[str, tuple[int, int]] | None = None,
    status: int = 200,
) -> HttpResponse:
    rows = [
        RuleRow(
            source=source,
            label=str(label),
            days=days.get(source, ""),
            error=(errors or {}).get(source, ""),
            would_go=_in_words(*would_go[source]) if would_go and source in would_go else "",
        )
        for source, label in SOURCES.items()
    ]
    context = {"section": "admin", "tab": "retention", "rows": rows, "is_counted": would_go is not None}
    return render(request, "memory/admin_retention.html", context, status=status)


def _wrong(text: str) -> str:
    """What is wrong with a number of days, "" where nothing is."""
    if not text or (text.isascii() and text.isdecimal() and 1 <= int(text) <= _LONGEST):
        return ""
    sentence = _("A whole number of days from 1 to %(most)s, or nothing to keep it for ever.")
    return sentence % {"most": format_number(_LONGEST)}


def _in_words(exchanges: int, documents: int) -> str:
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
