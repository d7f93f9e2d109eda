"""What a page lacks when it comes or comes back, found by what it says it has."""

from __future__ import annotations

import json
import uuid

from chat import access, frames
from chat.rows import turn_rows

# How many turns a page shows at once.
WINDOW = 50


def understood(text: str) -> dict[uuid.UUID, int]:
    """From `{"have": {turn: revision}}` the revisions by turn. Raises ValueError for anything else."""
    try:
        have = json.loads(text)["have"]
        return {uuid.UUID(turn): int(revision) for turn, revision in have.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not a list of turns") from error


def what_is_missing(
    person_id: uuid.UUID, thread_id: uuid.UUID, have: dict[uuid.UUID, int]
) -> tuple[str, dict[uuid.UUID, int]]:
    """HTML that brings the page up to date ("" if it is), and the revision of every turn it then shows."""
    thread = access.thread_for(person_id, thread_id)
    latest = list(thread.turns.standing().select_related("author").order_by("-position")[:WINDOW])[::-1]
    rows = turn_rows(thread, latest)
    gone = list(thread.turns.filter(id__in=have, stands=False).values_list("id", flat=True))
    changed = [row for row in rows if row.id in have and have[row.id] != row.revision]
    missing = [row for row in rows if row.id not in have]
    html = frames.snapshot(changed, missing, gone) if changed or missing or gone else ""
    return html, {row.id: row.revision for row in rows}
