"""Branches of message trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

_UNDATED = datetime.min.replace(tzinfo=UTC)


def branch(parents: Mapping[str, str], leaf: str) -> list[str]:
    """Return the ids from the root to `leaf`; `parents` maps each id to its parent. Stops at a missing parent or cycle."""
    path: dict[str, None] = {}
    while leaf in parents and leaf not in path:
        path[leaf] = None
        leaf = parents[leaf]
    return list(path)[::-1]


def current_leaf(parents: Mapping[str, str], times: Mapping[str, datetime | None], named: str = "") -> str:
    """Return the named message, or else the latest leaf; of several with one date, the last in the file; "" for none."""
    if named and named in parents:
        return named
    inner = set(parents.values())
    leaves = [id for id in parents if id not in inner]
    return max(reversed(leaves), key=lambda id: times.get(id) or _UNDATED, default="")


def all_branches(
    parents: Mapping[str, str], times: Mapping[str, datetime | None], leaf: str
) -> Iterator[tuple[str, str]]:
    """Yield each id once, with its parent ("" for a root), after the parent; versions are in the order of their dates.

    All that follows an id comes before the next version of it. A cycle is cut so that the branch of `leaf` is whole.
    """
    first = next(iter(branch(parents, leaf)), "")
    children = defaultdict(list)
    for id, parent in parents.items():
        children["" if id == first or parent not in parents else parent].append(id)
    for siblings in children.values():
        siblings.sort(key=lambda id: times.get(id) or _UNDATED)
    seen: set[str] = set()
    for root in (*children[""], *parents):  # those after the roots are in other cycles
        pending = [(root, "")]
        while pending:
            id, parent = pending.pop()
            if id not in seen:
                seen.add(id)
                yield id, parent
                pending += [(child, id) for child in reversed(children[id])]
