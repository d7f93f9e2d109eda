"""Sync requests: a page sends the revisions that it has, and gets the differences."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chat import access
from chat.models import Turn
from chat.realtime import frames
from chat.rows.queue import Waiting
from chat.rows.turns import turn_rows

PAGE_SIZE = 20  # turns on a page at first; a screen shows two or three
MAX_MISSED = 50  # turns that a synchronisation adds or replaces, and a page shows if its reader has not seen them
_MAX_TURNS = 10_000  # more than a page has after a lot of scrolling


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """A request of a page: the revisions of its turns, that its end was read, that its thread list is outdated.

    `is_typing`: its person is writing a message.
    """

    revisions: dict[uuid.UUID, int] | None = None
    mark_read: bool = False
    refresh_list: bool = False
    is_typing: bool = False


class TooFarBehindError(Exception):
    """The page lacks more than a synchronisation sends, and has to be loaded again."""


def parse_sync_request(text: str) -> SyncRequest:
    """Parse an object with `have`, `seen`, `back` or `typing`. Raises ValueError for anything else."""
    try:
        data = json.loads(text)
        have = data.get("have")
        revisions = None if have is None else {uuid.UUID(turn): int(revision) for turn, revision in have.items()}
        flags = (data.get(name) is True for name in ("seen", "back", "typing"))
        request = SyncRequest(revisions, *flags)
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
    """Return HTML that brings the page up to date ("" if it is), and the revisions of what was compared with it.

    Raises NotFoundError and TooFarBehindError.
    """
    thread = access.get_thread(person_id, thread_id)
    turns = (
        thread.turns.active_branch()
        .with_attachment_marks()
        .with_addition_marks()
        .select_related("author", "stopped_by")
    )
    known = thread.turns.active_branch().filter(id__in=revisions) if revisions else Turn.objects.none()
    shown = {row.id: row for row in known.values_list("id", "position", "revision", named=True)}
    # What comes before its first turn, the page loads when it is scrolled there.
    later = turns.filter(position__gte=min(row.position for row in shown.values())) if shown else turns
    limit = MAX_MISSED if shown else PAGE_SIZE
    found = list(later.order_by("-position")[: limit + 1])[::-1]
    latest = found[-limit:]
    changed_ids = {row.id for row in shown.values() if row.revision != revisions[row.id]}
    earlier_ids = changed_ids - {turn.id for turn in latest}
    is_gap = any(turn.id not in shown for turn in found[:-limit])
    if is_gap or len(earlier_ids) > MAX_MISSED:
        raise TooFarBehindError
    compared = [*turns.filter(id__in=earlier_ids), *latest] if earlier_ids else latest
    moved = _moved_ids(compared, revisions)
    rows = turn_rows(thread, [t for t in compared if t.id in moved or revisions.get(t.id) != t.revision])
    # Withdrawn messages have no turn any more.
    gone = [*(revisions.keys() - shown.keys()), *moved]
    changed = [row for row in rows if row.id in revisions and row.id not in moved]
    missing = [row for row in rows if row.id not in revisions or row.id in moved]
    html = frames.snapshot(changed, missing, gone, Waiting.of(latest)) if changed or missing or gone else ""
    return html, {turn.id: turn.revision for turn in compared}


def _moved_ids(latest: Sequence[Turn], known: Iterable[uuid.UUID]) -> list[uuid.UUID]:
    """Return the page's turns from the first place on at which it has another turn, or lacks one.

    `known` are its turns in their order.
    """
    current = [turn.id for turn in latest]
    former = [id for id in known if id in set(current)]
    first = next((i for i, (new, old) in enumerate(zip(current, former, strict=False)) if new != old), len(former))
    return [id for id in current[first:] if id in set(former)]
