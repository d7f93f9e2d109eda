"""Importing conversations from other products' exports."""

from __future__ import annotations

from typing import BinaryIO, cast

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_http_methods

from chat.importers import PROVIDERS
from chat.services.importing import Report, import_conversations
from memory.errors import BadQuery, CatoMemoryError
from memory.requests import PageRequest


@require_http_methods(["GET", "POST"])
def import_page(request: PageRequest) -> HttpResponse:
    """A file is read while one waits, and what became of it is told; larger ones are for the command line."""
    most = settings.CATO.documents.max_file_mb
    context: dict[str, object] = {"section": "settings", "providers": ", ".join(PROVIDERS), "most_mb": most}
    if request.method == "GET":
        return render(request, "chat/import.html", context)
    try:
        file = request.FILES.get("file")
        if file is None or file.file is None:
            raise BadQuery("Choose the file that was exported first.")
        if (file.size or 0) > most * 1_000_000:
            raise BadQuery(f"This file is larger than {most} MB: import it with the command import_history.")
        report = import_conversations(cast(BinaryIO, file.file), person_id=request.user.pk)
    except CatoMemoryError as error:
        return render(request, "chat/import.html", context | {"error": str(error)}, status=422)
    return render(request, "chat/import.html", context | {"report": report, "lines": _lines(report)})


def _lines(report: Report) -> list[dict[str, str]]:
    counts = [
        ("Conversations found", report.found),
        ("Imported", report.imported),
        ("Messages with their answers", report.turns),
        ("Already there", report.already_there),
        ("With something left out", report.passed_over),
        *((f"Left out: {what}", count) for what, count in sorted(report.left_out.items())),
    ]
    return [{"label": label, "figure": f"{count:,}"} for label, count in counts]
