"""Template rows of attachments: what a chip in the composer and under a message shows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.models import Attachment
from memory import api as memory
from memory.api import DocumentProgress, format_number


@dataclass(frozen=True, slots=True)
class AttachmentRow:
    """A file of a message, shown as an image or as a link.

    `detail` is the progress of a document until it is in the search index, then the number of its pages. `progress_url` is
    empty then.
    """

    id: uuid.UUID
    name: str
    url: str
    is_image: bool
    is_unreadable: bool
    detail: str
    bar: int | None = None
    progress_url: str = ""


@dataclass(frozen=True, slots=True)
class ComposerChip:
    """A file that was just attached, or the name of a rejected one with the reason."""

    attachment: AttachmentRow | None = None
    name: str = ""
    error: str = ""


def read_progress(attachments: Iterable[Attachment]) -> Mapping[uuid.UUID, DocumentProgress]:
    """Return the progress of the attached documents that are not in the search index yet, by document."""
    ids = {row.document_id for row in attachments if row.document_id}
    return memory.document_progress(ids) if ids else {}


def attachment_row(attachment: Attachment, progress: DocumentProgress | None = None) -> AttachmentRow:
    """Return the row of an attachment; `progress` is that of its document, None if it has none or is complete."""
    return AttachmentRow(
        id=attachment.id,
        name=attachment.name,
        url=reverse("attachment", args=[attachment.id]),
        is_image=attachment.is_image,
        is_unreadable=attachment.is_unreadable,
        detail=progress.text if progress else _detail(attachment),
        bar=progress.bar if progress else None,
        progress_url=reverse("attachment_progress", args=[attachment.id]) if progress and progress.is_under_way else "",
    )


def attachment_rows(
    attachments: Iterable[Attachment], progress: Mapping[uuid.UUID, DocumentProgress]
) -> list[AttachmentRow]:
    """Return the rows of these attachments, with the progress of their documents."""
    return [attachment_row(row, progress.get(row.document_id) if row.document_id else None) for row in attachments]


def composer_chips(attachments: Iterable[Attachment]) -> list[ComposerChip]:
    """Return the chips of files that go with the next message; they are not documents in memory yet."""
    return [ComposerChip(attachment_row(row)) for row in attachments]


def _detail(attachment: Attachment) -> str:
    if attachment.is_unreadable:
        return _("no text found")
    if not attachment.pages:
        return ""
    if PurePath(attachment.name).suffix.lower() == ".pptx":
        sentence = ngettext("%(count)s slide", "%(count)s slides", attachment.pages)
    else:
        sentence = ngettext("%(count)s page", "%(count)s pages", attachment.pages)
    return sentence % {"count": format_number(attachment.pages)}
