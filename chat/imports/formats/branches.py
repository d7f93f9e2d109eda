"""Branches of message trees."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

_UNDATED = datetime.min.replace(tzinfo=UTC)


def branch(parents: Mapping[str, str], leaf: str) -> list[str]:
    """Return the ids from the root to `leaf`; `parents` maps each id to its parent. Stops at a missing parent or cycle."""
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(path)[::-1]


def latest_leaf(parents: Mapping[str, str], times: Mapping[str, datetime | None]) -> str:
    """Return the latest leaf, of several with one date the last in the file; "" if there is none."""
    inner = set(parents.values())
    leaves = [id for id in parents if id not in inner]
    return max(reversed(leaves), key=lambda id: times.get(id) or _UNDATED, default="")
