"""What a page offers to its reader on turns: nothing that would be refused.

The rules are those of `chat.access`. Frames go to all readers of a thread, so there `static/js/author-controls.js` hides what
the page leaves out here.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace

from chat.rows.turns import TurnRow


def rows_for_reader(rows: Sequence[TurnRow], person_id: uuid.UUID, roles: Iterable[str]) -> list[TurnRow]:
    """Return the rows, in their order in the thread, without what this person with these roles in the thread may not do."""
    roles = frozenset(roles)
    found: list[TurnRow] = []
    # An author who does not own the thread cannot hide what others wrote after it.
    is_last = True
    for row in reversed(rows):
        is_last = is_last and row.author_id == person_id
        found.append(_row_for_reader(row, roles | _roles_on_turn(row, person_id, is_last=is_last)))
    return found[::-1]


def _roles_on_turn(row: TurnRow, person_id: uuid.UUID, *, is_last: bool) -> frozenset[str]:
    if row.author_id != person_id:
        return frozenset()
    return frozenset({"author", "last-author"}) if is_last else frozenset({"author"})


def _row_for_reader(row: TurnRow, roles: frozenset[str]) -> TurnRow:
    can_branch, can_restart = roles & {"last-author", "owner"}, roles & {"author", "owner"}
    return replace(
        row,
        edit_url=row.edit_url if can_branch else "",
        regenerate_url=row.regenerate_url if can_branch else "",
        branch=row.branch if can_branch else None,
        can_retry=row.can_retry and bool(can_restart),
        can_resume=row.can_resume and bool(can_restart),
        save_prompt_url=row.save_prompt_url if "author" in roles else "",
        forget_url=row.forget_url if roles & set(row.forget_roles.split()) else "",
        instructions=row.instructions
        if roles & {"owner", "manager"}
        else [replace(instruction, toggle_url="") for instruction in row.instructions],
        offer_url=row.offer_url if "author" in roles else "",
        tool_questions=row.tool_questions
        if roles & {"author", "manager"}
        else [replace(question, url="") for question in row.tool_questions],
    )
