"""Files of messages: stored before the message is sent, and deleted with the last turn that has them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.files import File
from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import access
from chat.errors import InvalidMessageError
from chat.models import ATTACHMENTS, Attachment, Thread, Turn
from memory import api as memory
from memory.api import InvalidInputError, clean_text, format_number

log = logging.getLogger(__name__)

# Detected by their first bytes, as is WebP. Models accept these four types, and browsers show them without running code.
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_MAX_NAME_LENGTH = 200
_UNSENT_MAX_AGE = timedelta(days=2)
_BATCH_SIZE = 200


def store_attachment(file: File[bytes], *, owner_id: uuid.UUID) -> Attachment:
    """Store an uploaded image or document. Raises a CatoError if the file is neither, or too large."""
    return save_attachment(read_attachment(file, owner_id=owner_id), file)


def read_attachment(file: File[bytes], *, owner_id: uuid.UUID, attachment_id: uuid.UUID | None = None) -> Attachment:
    """Return an unsaved attachment, of a document with its text, if it has any. Without an id, it gets a new one.

    Extracting a text can take long, so it is not done in a transaction. Raises a CatoError like `store_attachment`.
    """
    id = attachment_id or uuid.uuid4()
    if _media_type(file):
        return _read_image(file, owner_id=owner_id, id=id)
    name = memory.normalise_name(file.name or "")[-_MAX_NAME_LENGTH:]
    extracted = memory.extract_text(file, name=name)
    return Attachment(id=id, owner_id=owner_id, name=name, text=extracted.text, pages=extracted.pages)


def save_attachment(attachment: Attachment, file: File[bytes]) -> Attachment:
    """Store an attachment that was read from this file, with it."""
    attachment.file.save(attachment.name, file, save=False)
    with memory.delete_file_on_rollback(str(attachment.file.name)):
        attachment.save(force_insert=True)
    return attachment


def store_image(file: File[bytes], *, owner_id: uuid.UUID, attachment_id: uuid.UUID | None = None) -> Attachment:
    """Store an image. Raises InvalidMessageError if it is not an image or too large."""
    return save_attachment(_read_image(file, owner_id=owner_id, id=attachment_id or uuid.uuid4()), file)


def _read_image(file: File[bytes], *, owner_id: uuid.UUID, id: uuid.UUID) -> Attachment:
    name = clean_text(file.name or "").strip()[-_MAX_NAME_LENGTH:] or _("Picture")
    limit = settings.CATO.chat.max_image_mb
    if file.size > limit * 1_000_000:
        sentence = _("%(name)s has %(size)s MB; a picture may have %(most)s (chat.max_image_mb).")
        raise InvalidMessageError(
            sentence % {"name": name, "size": format_number(file.size / 1_000_000), "most": limit}
        )
    media_type = _media_type(file)
    if not media_type:
        raise InvalidMessageError(_("%(name)s is not a supported image (PNG, JPEG, GIF, WebP).") % {"name": name})
    return Attachment(id=id, owner_id=owner_id, name=name, media_type=media_type)


def store_text(file: File[bytes], *, text: str, attachment_id: uuid.UUID, owner_id: uuid.UUID) -> Attachment:
    """Store a text file that is imported; the caller has its text."""
    name = memory.normalise_name(file.name or "")[-_MAX_NAME_LENGTH:]
    row = Attachment(id=attachment_id, owner_id=owner_id, name=name, text=text[: memory.MAX_EXTRACTED_CHARACTERS])
    return save_attachment(row, file)


def own_attachments(ids: Sequence[uuid.UUID], *, owner_id: uuid.UUID) -> tuple[Attachment, ...]:
    """Return those of the attachments with these ids that this person uploaded and may read."""
    return tuple(access.own_attachments(owner_id).filter(id__in=ids)) if ids else ()


def claim_attachments(ids: Sequence[uuid.UUID], *, owner_id: uuid.UUID) -> tuple[Attachment, ...]:
    """Return this person's attachments with these ids.

    Raises InvalidMessageError if they are too many or one is missing.
    """
    limit = settings.CATO.chat.max_attachments
    if len(ids) > limit:
        sentence = _("A message can have at most %(most)s files, not %(count)s (chat.max_attachments).")
        raise InvalidMessageError(sentence % {"most": limit, "count": len(ids)})
    attachments = own_attachments(ids, owner_id=owner_id)
    if len(attachments) != len(set(ids)):
        raise InvalidMessageError(_("An attachment has expired. Remove it and attach it again."))
    return attachments


def add_attachments(turn: Turn, attachments: Sequence[Attachment]) -> None:
    """Make the attachments part of the turn's message; the first thread in which one is sent stays its own."""
    if not attachments:
        return
    turn.attachments.set(attachments)
    new = Attachment.objects.filter(id__in=[row.id for row in attachments], thread_id=None)
    new.update(thread_id=turn.thread_id)


def store_documents(turn: Turn, attachments: Iterable[Attachment]) -> None:
    """Store the attached documents in the space of the turn's thread, in the transaction that stores its exchange.

    A file that was already stored, with another version of the turn, stays as it is. So does one that was first sent in
    another thread, from which this turn or its message was copied. A file without text is not stored.
    """
    ids = [attachment.id for attachment in attachments if not attachment.is_image]
    if not ids:
        return
    new = Attachment.objects.filter(id__in=ids, document_id=None, thread_id=turn.thread_id).exclude(text="")
    with transaction.atomic():
        for attachment in new.select_for_update():
            _store_document(attachment, turn)


def _store_document(attachment: Attachment, turn: Turn) -> None:
    try:
        with attachment.file.open() as file, transaction.atomic():
            upload = memory.upload_document(
                file,
                name=attachment.name,
                space=turn.thread.space,
                owner_id=attachment.owner_id,
                source="upload",
                is_separate=True,
            )
    except (FileNotFoundError, InvalidInputError) as error:
        # The answer is complete all the same, and the file is still part of the message.
        log.warning("an attachment was not stored as a document: %s", type(error).__name__)
        return
    Attachment.objects.filter(id=attachment.id).update(document_id=upload.version.document_id)


def forget_attachments(turns: Sequence[Turn], *, by: uuid.UUID) -> set[uuid.UUID]:
    """Delete the attachments of forgotten turns with their files and documents; return the ids of all turns that had one.

    An attachment that was first sent in another thread is only removed from these turns: they are copies.
    """
    attachments = attachments_of(turns)
    had_one = set(Turn.objects.filter(attachments__in=attachments).values_list("id", flat=True))
    threads = {turn.thread_id for turn in turns}
    _delete([row for row in attachments if row.thread_id in threads], by=by)
    Turn.attachments.through.objects.filter(turn_id__in=[turn.id for turn in turns]).delete()
    delete_unreferenced([row for row in attachments if row.thread_id not in threads], by=by)
    return had_one


def delete_attachments_of_documents(document_ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
    """Delete the attachments whose documents were forgotten; return the ids of the turns that had one."""
    attachments = list(Attachment.objects.filter(document_id__in=list(document_ids)))
    had_one = set(Turn.objects.filter(attachments__in=attachments).values_list("id", flat=True))
    _delete(attachments, by=None)
    return had_one


def move_documents_of(thread: Thread, *, to: memory.Space, by: uuid.UUID) -> None:
    """Move the documents that were stored with turns of the thread and are still in its space, which is the one that it leaves.

    Raises InvalidInputError while one is being read.
    """
    ids = Attachment.objects.filter(thread_id=thread.id).exclude(document_id=None).values_list("document_id", flat=True)
    for document in memory.Document.objects.filter(id__in=list(ids), space=thread.space_id, forgotten_at=None):
        if memory.is_being_read(document):
            sentence = _("%(name)s is still being read. Move the thread when the file is in memory.")
            raise InvalidInputError(sentence % {"name": document.name})
        memory.move_document(document, to=to, by=by, is_separate=True)


def delete_unreferenced(attachments: Iterable[Attachment], *, by: uuid.UUID | None = None) -> int:
    """Delete those of the attachments that no turn has, with their files and documents; return their number.

    A document is also forgotten if only copies of its turns in other threads are left. `by` is the person who deleted
    the turns; None: the attachments were never sent.
    """
    rows = list(attachments)
    unreferenced = [row for row in rows if not row.turns.exists()]
    _delete(unreferenced, by=by)
    copied = [row for row in rows if row not in unreferenced and not _is_in_own_thread(row)]
    _forget_documents_of(copied, by=by)
    return len(unreferenced)


def delete_unsent_attachments() -> int:
    """Delete a batch of attachments that were not sent within two days; return their number."""
    unsent = Attachment.objects.filter(turns=None, created_at__lt=timezone.now() - _UNSENT_MAX_AGE)
    return delete_unreferenced(unsent[:_BATCH_SIZE])


def delete_unsent_attachments_of(person_id: uuid.UUID) -> int:
    """Delete a batch of this person's attachments that were not sent; return their number."""
    return delete_unreferenced(Attachment.objects.filter(turns=None, owner_id=person_id)[:_BATCH_SIZE])


def delete_forgotten_attachments() -> int:
    """Delete attachments of forgotten messages and documents, which remain if a process dies; return their number."""
    documents = memory.Document.objects.exclude(forgotten_at=None).filter(pk=OuterRef("document_id"))
    of_documents = list(Attachment.objects.filter(Exists(documents))[:_BATCH_SIZE])
    _delete(of_documents, by=None)
    exchanges = memory.Exchange.objects.exclude(forgotten_at=None).filter(
        Q(pk=OuterRef("exchange_id")) | Q(pk=OuterRef("copied_exchange_id"))
    )
    forgotten_by = Subquery(exchanges.values("forgotten_by")[:1])
    turns: QuerySet[Any] = Turn.objects.exclude(attachments=None).filter(Exists(exchanges)).distinct()
    of_turns = list(turns.annotate(by=forgotten_by)[:_BATCH_SIZE])
    for turn in of_turns:
        forget_attachments([turn], by=turn.by)
    return len(of_documents) + len(of_turns)


def delete_orphaned_attachments(*, dry_run: bool = False) -> int:
    """Delete stored files to which no attachment refers; return their number."""
    return memory.delete_orphaned_files(Attachment, "file", folder=ATTACHMENTS, dry_run=dry_run)


def attachments_of(turns: Iterable[Turn]) -> list[Attachment]:
    """Return the attachments of these turns."""
    return list(Attachment.objects.filter(turns__in=[turn.id for turn in turns]).distinct())


def _is_in_own_thread(attachment: Attachment) -> bool:
    return any(turn.thread_id == attachment.thread_id for turn in attachment.turns.only("thread_id"))


def _delete(attachments: Sequence[Attachment], *, by: uuid.UUID | None) -> None:
    """Delete the attachments with their files and, if `by` is a person, with their documents."""
    _forget_documents_of(attachments, by=by)
    for row in attachments:
        memory.delete_after_commit(row.file.name)
        row.delete()


def _forget_documents_of(attachments: Iterable[Attachment], *, by: uuid.UUID | None) -> None:
    """Forget the documents of attachments, if `by` is a person; not those that their owners have moved elsewhere since.

    Somebody who deletes a message forgets their own documents of it in whichever space these are.
    """
    thread_ids = {row.document_id: row.thread_id for row in attachments if row.document_id and row.thread_id}
    if not thread_ids or by is None:
        return
    spaces = dict(Thread.objects.filter(id__in=thread_ids.values()).values_list("id", "space_id"))
    documents = memory.Document.objects.filter(id__in=thread_ids).values_list("id", "space_id", "owner_id")
    forgotten = [id for id, space_id, owner_id in documents if owner_id == by or space_id == spaces.get(thread_ids[id])]
    memory.forget_documents(forgotten, by=by)


def _media_type(file: File[bytes]) -> str:
    head = file.read(12)
    file.seek(0)
    if head[:4] == b"RIFF" and head[8:] == b"WEBP":
        return "image/webp"
    return next((kind for signature, kind in _SIGNATURES.items() if head.startswith(signature)), "")
