"""Rows of the versions of a turn, and the links that switch between them."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from django.db.models import Q
from django.urls import reverse

from chat.models import Thread, Turn


@dataclass(frozen=True, slots=True)
class BranchRow:
    """The number of a turn among its siblings, and the URLs that switch to the previous and next one."""

    number: int
    of: int
    previous_url: str
    next_url: str


def branch_rows(thread: Thread, turns: Iterable[Turn]) -> dict[uuid.UUID, BranchRow]:
    """Return the rows of the turns that have siblings, by turn."""
    turns = list(turns)
    siblings = Q(parent__in=[t.parent_id for t in turns if t.parent_id])
    if any(t.parent_id is None for t in turns):
        siblings |= Q(parent=None)
    by_parent: dict[uuid.UUID | None, list[uuid.UUID]] = defaultdict(list)
    for id, parent_id in thread.turns.filter(siblings).order_by("position").values_list("id", "parent_id"):
        by_parent[parent_id].append(id)
    rows = {}
    for t in turns:
        sibling_ids = by_parent[t.parent_id]
        if len(sibling_ids) > 1:
            index = sibling_ids.index(t.id)
            urls = ["", *(reverse("switch_branch", args=[thread.id, id]) for id in sibling_ids), ""]
            rows[t.id] = BranchRow(index + 1, len(sibling_ids), previous_url=urls[index], next_url=urls[index + 2])
    return rows
