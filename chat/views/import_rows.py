"""Template rows of imports."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import ImportJob
from memory.api import Job, count_unembedded_imports, estimate_remaining, format_number, format_remaining

# The parameter of requests for the row of a completed import whose messages are still being embedded.
EMBEDDING = "embedding"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A conversation that was not, or not completely, imported."""

    title: str
    why: str


@dataclass(frozen=True, slots=True)
class ImportRow:
    """An import; `bar` is its progress from 0 to 20, None if unknown or not running.

    The page requests the row again after `poll_seconds`, if that is not 0.
    """

    id: uuid.UUID
    name: str
    at: datetime
    state_text: str
    bar: int | None
    error: str
    lines: Sequence[dict[str, str]]
    skipped: Sequence[Skipped]
    more_skipped: int
    row_url: str
    cancel_url: str
    retry_url: str
    poll_seconds: int
    embedding_text: str
    is_under_way: bool
    has_failed: bool


def row_of(row: ImportJob) -> ImportRow:
    """Return the row of an import job."""
    skipped = [Skipped(title, why) for title, why in row.skipped]
    can_retry = row.state == Job.State.FAILED and row.file
    embedding_text = _embedding_text(row)
    row_url = reverse("import_row", args=[row.id])
    return ImportRow(
        id=row.id,
        name=row.name,
        at=row.finished_at or row.created_at,
        state_text=_state_text(row),
        bar=round(20 * min(row.read / row.total, 1)) if row.is_under_way and row.total else None,
        error=row.error,
        lines=_lines(row) if row.read else [],
        skipped=[] if row.is_under_way else skipped,
        more_skipped=row.skipped_count - len(skipped),
        row_url=f"{row_url}?{EMBEDDING}" if embedding_text else row_url,
        cancel_url=reverse("cancel_import", args=[row.id]) if row.is_under_way else "",
        retry_url=reverse("retry_import", args=[row.id]) if can_retry else "",
        poll_seconds=1 if row.is_under_way else 5 if embedding_text else 0,
        embedding_text=embedding_text,
        is_under_way=row.is_under_way,
        has_failed=row.state == Job.State.FAILED,
    )


def _state_text(row: ImportJob) -> str:
    if row.cancelled_at:
        return _("Cancelled. What was imported until then stays.")
    if row.state == Job.State.FAILED:
        return _("Partly imported") if row.turns else _("Not imported")
    if row.state == Job.State.DONE:
        return _("Imported")
    if row.error:
        return _("Interrupted; will retry")
    if row.locked_until is None:
        return _("Waiting to be read")
    if row.total is None:
        return _("Counting the conversations")
    text = _("%(read)s of %(total)s conversations") % {
        "read": format_number(row.read),
        "total": format_number(row.total),
    }
    return _with_remaining_time(text, ("import", row.id), row.total - row.read)


def _embedding_text(row: ImportJob) -> str:
    """Return how many imported messages cannot be found by meaning yet, "" if there are none."""
    if not row.turns or row.finished_at is None:
        return ""
    waiting = count_unembedded_imports(owner_id=row.owner_id, start=row.created_at, end=row.finished_at)
    if not waiting:
        return ""
    text = ngettext(
        "%(count)s message is found by keywords only until it is embedded",
        "%(count)s messages are found by keywords only until they are embedded",
        waiting,
    )
    return _with_remaining_time(text % {"count": format_number(waiting)}, ("embedding", row.id), waiting)


def _with_remaining_time(text: str, queue: object, waiting: int) -> str:
    remaining = format_remaining(estimate_remaining(queue, waiting))
    return f"{text}, {remaining}" if remaining else text


def _lines(row: ImportJob) -> list[dict[str, str]]:
    counts = [
        (_("Conversations, projects and memories found"), row.found),
        (_("Imported"), row.imported),
        (_("Messages with their answers"), row.turns),
        (_("Already there"), row.already_there),
        *((_("Not imported: %(why)s") % {"why": _(why)}, count) for why, count in sorted(row.not_imported.items())),
        *((_("Left out: %(what)s") % {"what": _(what)}, count) for what, count in sorted(row.left_out.items())),
    ]
    return [{"label": label, "figure": format_number(count)} for label, count in counts]
