"""Sync requests: a page sends the revisions that it has, and gets the differences."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from chat import access
from chat.realtime import frames
from chat.rows.turns import turn_rows

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
    latest = list(thread.turns.active_branch().select_related("author").order_by("-position")[:WINDOW])[::-1]
    rows = turn_rows(thread, latest)
    removed = list(thread.turns.filter(id__in=revisions, is_on_active_branch=False).values_list("id", flat=True))
    changed = [row for row in rows if row.id in revisions and revisions[row.id] != row.revision]
    missing = [row for row in rows if row.id not in revisions]
    html = frames.snapshot(changed, missing, removed) if changed or missing or removed else ""
    return html, {row.id: row.revision for row in rows}
