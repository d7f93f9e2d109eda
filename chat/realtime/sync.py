"""What a page lacks when it comes or comes back, found by what it says it has."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

from chat import access
from chat.realtime import frames
from chat.rows.turns import turn_rows

# How many turns a page shows at once.
WINDOW = 50
# More turns than any page shows after a lot of scrolling.
_MAX_TURNS = 10_000


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What a page says: the turns it has with their revisions, that its reader saw the end, that its list is old."""

    have: dict[uuid.UUID, int] | None = None
    is_seen: bool = False
    is_back: bool = False


def parse_sync_request(text: str) -> SyncRequest:
    """Parse an object with `have`, `seen` or `back`. Raises ValueError for anything else."""
    try:
        told = json.loads(text)
        have = told.get("have")
        revisions = None if have is None else {uuid.UUID(turn): int(revision) for turn, revision in have.items()}
        understood = SyncRequest(revisions, told.get("seen") is True, told.get("back") is True)
    except (TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise ValueError("not what a page says") from error
    if understood == SyncRequest():
        raise ValueError("nothing is said")
    if understood.have is not None and len(understood.have) > _MAX_TURNS:
        raise ValueError("more turns than a page shows")
    return understood


def missing_updates(
    person_id: uuid.UUID, thread_id: uuid.UUID, have: dict[uuid.UUID, int]
) -> tuple[str, dict[uuid.UUID, int]]:
    """HTML that brings the page up to date ("" if it is), and the revision of every turn it then shows."""
    thread = access.get_thread(person_id, thread_id)
    latest = list(thread.turns.active_branch().select_related("author").order_by("-position")[:WINDOW])[::-1]
    rows = turn_rows(thread, latest)
    gone = list(thread.turns.filter(id__in=have, stands=False).values_list("id", flat=True))
    changed = [row for row in rows if row.id in have and have[row.id] != row.revision]
    missing = [row for row in rows if row.id not in have]
    html = frames.snapshot(changed, missing, gone) if changed or missing or gone else ""
    return html, {row.id: row.revision for row in rows}
