"""A document as its pages show it: words chosen, links made, rights asked."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.template.defaultfilters import filesizeformat
from django.urls import reverse

from memory.readers import FORMATS
from memory.services.documents.listing import DocumentState, VersionState

_LABELS = {each.kind: each.label for each in FORMATS}
_STAGES = {
    "received": "Waiting to be read",
    "reading": "Reading",
    "chunking": "Cutting into passages",
    "ready": "Remembered",
    "failed": "Not added",
    "replaced": "Replaced",
}


@dataclass(frozen=True, slots=True)
class Chip:
    """What became of one added file: the document's row, or why there is none."""

    name: str
    row: DocumentRow | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """`bar` is how far the newest version is, 0 to 20, None where that is not known or nothing is under way."""

    id: uuid.UUID
    name: str
    url: str
    about: str
    space_kind: str
    space_name: str
    version: int
    stage: str
    state_text: str
    bar: int | None
    beneath: str
    error: str
    since: datetime
    row_url: str
    cancel_url: str
    retry_url: str
    is_under_way: bool
    is_serving: bool


def row_of(state: DocumentState, *, person_id: uuid.UUID, is_administrator: bool) -> DocumentRow:
    """The row as this person gets it."""
    newest = state.newest
    may = state.owner_id == person_id or is_administrator
    return DocumentRow(
        id=state.id,
        name=state.name,
        url=reverse("document", args=[state.id]),
        about=about(newest),
        space_kind=state.space_kind,
        space_name=state.space_name,
        version=newest.number,
        stage=newest.stage,
        state_text=state_text(newest),
        bar=_bar(newest) if newest.is_under_way else None,
        beneath=_beneath(state),
        error=newest.error if newest.stage == "failed" else "",
        since=newest.ready_at or newest.created_at,
        row_url=reverse("document_row", args=[state.id]),
        cancel_url=reverse("cancel_document", args=[state.id]) if may and newest.is_under_way else "",
        retry_url=reverse("retry_document", args=[state.id]) if may and newest.stage == "failed" else "",
        is_under_way=newest.is_under_way,
        is_serving=state.serving is not None,
    )


def about(version: VersionState) -> str:
    """Format, size and passages in one line."""
    facts = [_LABELS.get(version.kind, ""), filesizeformat(version.size)]
    if version.stage == "ready" and version.total:
        facts.append(f"{version.total:,} passage{'' if version.total == 1 else 's'}")
    return ", ".join(fact for fact in facts if fact)


def state_text(version: VersionState) -> str:
    """How far it is, in words."""
    if version.stage == "embedding" and version.total:
        return f"{version.done:,} of {version.total:,} passages"
    return _STAGES.get(version.stage, version.stage.capitalize())


def _bar(version: VersionState) -> int | None:
    return round(20 * version.done / version.total) if version.total else None


def _beneath(state: DocumentState) -> str:
    """Which version answers meanwhile."""
    if state.serving is None or state.serving.id == state.newest.id:
        return ""
    until = " until this one is complete" if state.newest.is_under_way else ""
    return f"Version {state.serving.number} answers{until}."
