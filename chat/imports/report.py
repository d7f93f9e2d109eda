"""What an import has found, stored and left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from chat.imports.formats.conversation import MEDIA

_MAX_SKIPPED = 1000


@dataclass(slots=True)
class ImportReport:
    """The result of an import.

    `found` counts items: conversations, projects, memories and what could not be read. Each is one of `imported`, with
    something new, `already_there`, without, or `not_imported`, by the reason. `skipped` has title and reason of the first
    1000 of `skipped_count` items that were not, or not completely, imported; `left_out` counts parts of conversations.
    """

    found: int = 0
    imported: int = 0
    already_there: int = 0
    turns: int = 0
    skipped_count: int = 0
    skipped: list[tuple[str, str]] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    not_imported: Counter[str] = field(default_factory=Counter)

    def skip(self, title: str, why: str, kind: str = "") -> None:
        """Count an item that was not completely imported, or with a `kind` of reason not at all."""
        self.skipped_count += 1
        if kind:
            self.not_imported[kind] += 1
        if len(self.skipped) < _MAX_SKIPPED:
            self.skipped.append((title, why))

    def find_media(self, count: int) -> None:
        """Count images and files no longer as left out: they were found in the export."""
        if count:
            self.left_out[MEDIA] = max(0, self.left_out[MEDIA] - count)
