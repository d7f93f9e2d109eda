"""Sync requests: a page sends the revisions that it has, and gets the differences."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from chat import access
from chat.realtime import frames
from chat.rows.turns import ActiveTurn, turn_rows

WINDOW = 50  # turns on a page at first
_MAX_TURNS = 10_000  # more than a page has after a lot of scrolling


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """A request of a page: the revisions of its turns, that its end was read, that its thread list is outdated."""

    revisions: dict[uuid.UUID, int] | None = None
    mark_read: bool = False
    refresh_list: bool = False


def parse_sync_request(text: str) -> SyncRequest:
    """Parse an object with `have`, `seen` or `back`. Raises ValueError for anything else."""
    try:
        data = json.loads(text)
        have = data.get("have")
        revisions = None if have is None else {uuid.UUID(turn): int(revision) for turn, revision in have.items()}
        request = SyncRequest(revisions, data.get("seen") is True, data.get("back") is True)
    except (TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError("invalid sync request") from error
    if request == SyncRequest():
        raise ValueError("empty sync request")
    if request.revisions is not None and len(request.revisions) > _MAX_TURNS:
        raise ValueError("too many turns")
    return request


def missing_updates(
    person_id: uuid.UUID, thread_id: uuid.UUID, revisions: dict[uuid.UUID, int]
) -> tuple[str, dict[uuid.UUID, int]]:
    """Return HTML that brings the page up to date ("" if it is), and the revision of each turn that it then has."""
    thread = access.get_thread(person_id, thread_id)
    turns = thread.turns.active_branch().with_attachment_marks().select_related("author", "stopped_by")
    latest = list(turns.order_by("-position")[:WINDOW])[::-1]
    rows = turn_rows(thread, [turn for turn in latest if revisions.get(turn.id) != turn.revision])
    removed = thread.turns.filter(id__in=revisions, is_on_active_branch=False).values_list("id", flat=True)
    gone = list(removed) if revisions else []
    changed = [row for row in rows if row.id in revisions]
    missing = [row for row in rows if row.id not in revisions]
    active = next((ActiveTurn.of(turn) for turn in latest if turn.is_running), None)
    html = frames.snapshot(changed, missing, gone, active) if changed or missing or gone else ""
    return html, {turn.id: turn.revision for turn in latest}
