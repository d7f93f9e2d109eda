"""Which messages of a tree are the conversation: those from the first down to one leaf."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

_UNDATED = datetime.min.replace(tzinfo=UTC)


def branch(parents: Mapping[str, str], leaf: str) -> list[str]:
    """The ids from the first message down to `leaf`; `parents` has the parent of each that there is.

    A parent that is not there ends the way up, and so does a circle.
    """
    way: dict[str, None] = {}
    while leaf in parents and leaf not in way:
        way[leaf] = None
        leaf = parents[leaf]
    return list(way)[::-1]


def latest_leaf(parents: Mapping[str, str], times: Mapping[str, datetime | None]) -> str:
    """The leaf that was said last, of those said at one time the last in the file; "" where there is none."""
    inner = set(parents.values())
    leaves = [id for id in parents if id not in inner]
    return max(reversed(leaves), key=lambda id: times.get(id) or _UNDATED, default="")
