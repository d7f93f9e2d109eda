"""The period and the spaces of which the message of a digest tells, as its turn stores them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memory.api import DateRange, SpaceIds


@dataclass(frozen=True, slots=True)
class DigestScope:
    """A period, and the chosen spaces; without any it is all that the person may read."""

    period: DateRange
    space_ids: SpaceIds = frozenset()

    def limit(self, readable: SpaceIds) -> SpaceIds:
        """Return those of the readable spaces of which the digest tells."""
        return readable & self.space_ids if self.space_ids else readable

    def as_json(self) -> dict[str, Any]:
        """Return the scope as stored in a turn."""
        return {
            "start": self.period.start.isoformat(),
            "end": self.period.end.isoformat(),
            "spaces": sorted(map(str, self.space_ids)),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> DigestScope:
        """Restore a scope from the result of `as_json`."""
        period = DateRange(datetime.fromisoformat(data["start"]), datetime.fromisoformat(data["end"]))
        return cls(period, parse_space_ids(data["spaces"]))


def parse_space_ids(ids: Iterable[str]) -> SpaceIds:
    """Return the ids that are stored as texts."""
    return frozenset(uuid.UUID(id) for id in ids)
