"""Rows of documents for templates, with texts, links and permissions."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from memory.documents.extraction import FORMATS
from memory.documents.queries import DocumentStatus, VersionStatus, unfinished_versions
from memory.utils.formatting import format_number

_LABELS = {format.kind: format.label for format in FORMATS}
_STAGES = {
    "received": gettext_noop("Waiting to be read"),
    "reading": gettext_noop("Reading"),
    "chunking": gettext_noop("Splitting into passages"),
    "ready": gettext_noop("Remembered"),
    "failed": gettext_noop("Not added"),
    "replaced": gettext_noop("Replaced"),
}


@dataclass(frozen=True, slots=True)
class UploadChip:
    """The result of one upload: the document's row, or an error. `is_kept`: it cannot be dismissed."""

    name: str
    row: DocumentRow | None = None
    error: str = ""
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One document. `bar`: progress of the newest version from 0 to 20, None if unknown or finished."""

    id: uuid.UUID
    name: str
    url: str
    summary: str
    space_kind: str
    space_name: str
    version: int
    stage: str
    state_text: str
    bar: int | None
    live_version_note: str
    error: str
    since: datetime
    row_url: str
    cancel_url: str
    retry_url: str
    is_under_way: bool
    is_live: bool


@dataclass(frozen=True, slots=True)
class DocumentProgress:
    """How far a document is that is not in the index: as text, and as a bar from 0 to 20, None if unknown."""

    text: str
    bar: int | None
    is_under_way: bool


def document_row(state: DocumentStatus, *, person_id: uuid.UUID, is_administrator: bool) -> DocumentRow:
    """Return the row with the links that this person may use."""
    newest = state.newest
    can_change = state.owner_id == person_id or is_administrator
    return DocumentRow(
        id=state.id,
        name=state.name,
        url=reverse("document", args=[state.id]),
        summary=summary(newest),
        space_kind=state.space_kind,
        space_name=state.space_name,
        version=newest.number,
        stage=newest.stage,
        state_text=state_text(newest),
        bar=_bar(newest),
        live_version_note=_live_version_note(state),
        error=newest.error if newest.stage == "failed" else "",
        since=newest.ready_at or newest.created_at,
        row_url=reverse("document_row", args=[state.id]),
        cancel_url=reverse("cancel_document", args=[state.id]) if can_change and newest.is_under_way else "",
        retry_url=reverse("retry_document", args=[state.id]) if can_change and newest.stage == "failed" else "",
        is_under_way=newest.is_under_way,
        is_live=state.live_version is not None,
    )


def document_progress(document_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, DocumentProgress]:
    """Return the progress of those of these documents whose newest version is not in the index, by document."""
    return {
        document_id: DocumentProgress(state_text(newest), _bar(newest), newest.is_under_way)
        for document_id, newest in unfinished_versions(document_ids).items()
    }


def summary(version: VersionStatus) -> str:
    """Return format, size and number of passages in one line."""
    label = _LABELS.get(version.kind, "")
    facts = [label and _(label), filesizeformat(version.size)]
    if version.stage == "ready" and version.total:
        passages = ngettext("%(count)s passage", "%(count)s passages", version.total)
        facts.append(passages % {"count": format_number(version.total)})
    return ", ".join(fact for fact in facts if fact)


def state_text(version: VersionStatus) -> str:
    """Return the state or progress as text."""
    if version.is_under_way and version.error:
        return _("Interrupted; will retry")
    if version.stage == "embedding" and version.total:
        counts = {"done": format_number(version.done), "total": format_number(version.total)}
        return _("%(done)s of %(total)s passages") % counts
    return _(_STAGES.get(version.stage, version.stage.capitalize()))


def _bar(version: VersionStatus) -> int | None:
    return round(20 * version.done / version.total) if version.is_under_way and version.total else None


def _live_version_note(state: DocumentStatus) -> str:
    """Return a sentence that names the live version if it is not the newest."""
    if state.live_version is None or state.live_version.id == state.newest.id:
        return ""
    sentence = _("Version %(number)s is searchable.")
    if state.newest.is_under_way:
        sentence = _("Version %(number)s stays searchable until this one is ready.")
    return sentence % {"number": state.live_version.number}
