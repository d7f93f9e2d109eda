"""Import conversations of other products as threads of a person, with their dates, and store them in memory.

Ids are derived from person, product, conversation and message. So a message is imported once, and its tombstone
prevents that it is imported again after it was forgotten.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import access
from chat.errors import ConflictError, InvalidMessageError
from chat.imports.archive import ArchiveImport
from chat.imports.channel_projects import project_of_channel
from chat.imports.extras import import_memories, import_project, imported_note_id, save_instructions
from chat.imports.formats import PROVIDERS, cato, conversations
from chat.imports.formats.archive import ArchivedAttachment, ArchivedPart
from chat.imports.formats.conversation import (
    FORGOTTEN,
    REFUSED,
    UNASKED,
    UNKNOWN,
    UNREADABLE,
    WITHOUT_MESSAGES,
    Conversation,
    Unread,
)
from chat.imports.formats.extras import Memories, Project
from chat.imports.formats.pairs import Pair, pairs_of
from chat.imports.formats.shared_channels import NameOfAccount
from chat.imports.formats.sources import ExportFiles
from chat.imports.known_parts import with_known_ids
from chat.imports.pictures import PictureImport
from chat.imports.report import ImportReport
from chat.imports.turns import DatedPair, save_batch
from chat.models import Thread, Turn
from memory import api as memory
from memory.api import (
    Exchange,
    ExtractionError,
    InvalidInputError,
    ProgressCallback,
    Space,
    batched,
    excerpt,
    no_progress,
    parse_uuid,
    pause_after_writing,
)

_BATCH_SIZE = 50
_LOOKUP_BATCH_SIZE = 500  # databases limit the number of values in a query
_NAMESPACE = uuid.UUID("9d3f6c1e-52a7-5c0b-9a54-6c9f0b7d1a42")


def import_conversations(
    source: Path | BinaryIO,
    *,
    person_id: uuid.UUID,
    space: Space | None = None,
    has_channel_projects: bool = False,
    progress: ProgressCallback = no_progress,
    report: ImportReport | None = None,
) -> ImportReport:
    """Import every conversation in `source` (a JSON file, a zip, a folder) into `space`; None: the personal space.

    With `has_channel_projects`, each channel of a team chat goes to a project of its own instead.
    Commits batches of 50 turns with their exchanges, so that it can be interrupted and repeated. `progress` counts
    "conversations" and "turns"; `report` is updated meanwhile. Raises InvalidInputError if `source` cannot be opened, and
    ExtractionError if it is damaged as a whole, or if nothing in it can be read.
    """
    report = ImportReport() if report is None else report
    space = space or memory.personal_space(person_id)
    with ExportFiles(source) as files:
        archive = ArchiveImport(files, space, person_id)
        pictures = PictureImport(files, space)
        own_names = {"", cato.account_name(files), _name_of(person_id)}
        for item in conversations(source, name_of_account=_accounts_by_email()):
            report.found += 1
            if isinstance(item, Unread):
                report.skip(item.title, item.why, item.kind)
            elif isinstance(item, Conversation):
                if item.author not in own_names:
                    item = cato.with_author(item)
                _import_one(item, archive, pictures, report, progress, has_channel_projects=has_channel_projects)
            else:
                _import_extra(item, archive, report)
            progress("conversations", 1)
    if report.found == report.not_imported[UNREADABLE] + report.not_imported[UNKNOWN]:
        why = report.skipped[0][1] if report.skipped else _("There are no conversations in it.")
        sentence = _("%(why)s Supported: exports of %(providers)s, as a zip or as JSON in UTF-8.")
        raise ExtractionError(sentence % {"why": why, "providers": ", ".join(PROVIDERS)})
    return report


def _accounts_by_email() -> NameOfAccount:
    people = get_user_model().objects.filter(is_active=True).values_list("email", "name")
    names = {email.casefold(): name for email, name in people if email}
    return lambda email: names.get(email.casefold(), "")


def _name_of(person_id: uuid.UUID) -> str:
    return get_user_model().objects.values_list("name", flat=True).get(pk=person_id)


def _import_extra(item: Project | Memories | ArchivedPart, archive: ArchiveImport, report: ImportReport) -> None:
    space, person_id = archive.space, archive.person_id
    if isinstance(item, Project):
        counts = import_project(item, space=space, person_id=person_id)
    elif isinstance(item, Memories):
        counts = import_memories(item, space=space, person_id=person_id)
        archive.exchange_ids |= {id: imported_note_id(item, id, person_id) for id in item.texts}
    else:
        counts = archive.add(item)
    if isinstance(item, ArchivedAttachment) and (counts.new or counts.already_there):
        # The threads, which were read before, only name their files.
        report.find_media(len(item.turn_ids))
    for reason in counts.refused[1:] if not (counts.new or counts.already_there) else counts.refused:
        report.skip(item.title, reason)
    if counts.new:
        report.imported += 1
    elif counts.already_there:
        report.already_there += 1
    elif counts.refused:
        report.skip(item.title, counts.refused[0], REFUSED)
    elif counts.forgotten:
        report.skip(item.title, _("Skipped: forgotten earlier."), FORGOTTEN)
    else:
        report.skip(item.title, _("There is nothing in it."), WITHOUT_MESSAGES)


def _import_one(
    conversation: Conversation,
    archive: ArchiveImport,
    pictures: PictureImport,
    report: ImportReport,
    progress: ProgressCallback,
    *,
    has_channel_projects: bool,
) -> None:
    space, person_id = archive.space, archive.person_id
    pairs, unasked_count = pairs_of(conversation)
    report.left_out += Counter(conversation.left_out) + Counter({UNASKED: unasked_count})
    title = " ".join(conversation.title.split()) or excerpt(pairs[0].message, 80) or conversation.provider
    thread_id = uuid.uuid5(_NAMESPACE, f"{person_id}/{conversation.provider}/{conversation.id}")
    cato_ids = _cato_ids(conversation, conversation.id)
    if access.readable_threads(person_id).filter(id__in=cato_ids).exists():
        report.already_there += 1
        return
    dated = _date_pairs(conversation, thread_id, pairs)
    if conversation.is_transcript:
        dated = with_known_ids(thread_id, dated)
    if conversation.provider == cato.PROVIDER:
        archive.turn_ids |= {item.pair.id: item.id for item in dated}
    forgotten = _forgotten_ids(conversation, dated)
    existing = dict(Thread.objects.filter(id__in=[thread_id, *cato_ids]).values_list("id", "deleted_at"))
    if (forgotten and not existing) or any(existing.values()):
        report.skip(title, _("Skipped: forgotten earlier."), FORGOTTEN)
        return
    new_pairs = [item for item in dated if item.id not in forgotten and not item.pair.is_forgotten]
    if len(new_pairs) < len(dated):
        why = _("Forgotten earlier and not imported again: %(count)s of %(all)s turns.")
        counts = {"count": len(dated) - len(new_pairs), "all": len(dated)}
        report.skip(title, why % counts, "" if new_pairs else FORGOTTEN)
    if not new_pairs:
        return
    if has_channel_projects and conversation.is_transcript:
        try:
            space = project_of_channel(conversation, thread_id, person_id)
        except InvalidInputError as error:
            report.skip(title, str(error), REFUSED)
            return
    saved, refusal = 0, ""
    for batch in batched(new_pairs, _BATCH_SIZE):
        with pause_after_writing(), transaction.atomic():
            # Its owner can delete or move the thread, or lose the space, between two batches.
            is_new = not saved and thread_id not in existing
            if refusal := _refusal(conversation, thread_id, batch, space, person_id, is_new=is_new):
                break
            # What is forgotten everywhere during the import waits for the lock of the thread, or is found here.
            forgotten = _forgotten_ids(conversation, batch)
            left = [item for item in batch if item.id not in forgotten]
            count = save_batch(conversation, title, thread_id, dated, left, space, person_id) if left else 0
        saved += count
        report.turns += count
        report.find_media(pictures.add(left))
        progress("turns", count)
    report.imported += saved > 0
    report.already_there += not saved
    if refusal:
        report.skip(title, refusal)
        return
    if conversation.instructions:
        try:
            save_instructions(
                f"{conversation.provider} instructions", conversation.instructions, space=space, person_id=person_id
            )
        except (ConflictError, InvalidMessageError) as error:
            report.skip(title, str(error))


def _date_pairs(conversation: Conversation, thread_id: uuid.UUID, pairs: Sequence[Pair]) -> list[DatedPair]:
    """Add ids and dates to the pairs; a message without a date gets that of its parent."""
    begin = conversation.created_at or next((pair.said_at for pair in pairs if pair.said_at), None) or timezone.now()
    dated: dict[str, DatedPair] = {}
    for pair in pairs:
        parent = dated.get(pair.parent_id)
        sent_at = pair.said_at or (parent.answered_at if parent else begin)
        id = uuid.uuid5(thread_id, pair.id)
        # A part of a transcript has no answer; instead, the time of its last edit is stored.
        completed_at = pair.answered_at or pair.edited_at or sent_at
        dated[pair.id] = DatedPair(id, parent.id if parent else None, pair, sent_at, completed_at)
    return list(dated.values())


def _forgotten_ids(conversation: Conversation, dated: Sequence[DatedPair]) -> set[uuid.UUID]:
    """Return the ids of the pairs that were forgotten, as imported turns or as the turns that Cato exported.

    A message that was forgotten with one version of its answer is not imported with another one.
    """
    names = {name: item.id for item in dated for name in (item.id, *_cato_ids(conversation, item.pair.id))}
    tombstones = Exchange.objects.exclude(forgotten_at=None).values_list("turn_id", flat=True)
    forgotten = {
        names[id] for batch in batched(names, _LOOKUP_BATCH_SIZE) for id in tombstones.filter(turn_id__in=batch) if id
    }
    messages = {item.pair.version_of or item.pair.id for item in dated if item.id in forgotten}
    return {item.id for item in dated if (item.pair.version_of or item.pair.id) in messages}


def _cato_ids(conversation: Conversation, id: str) -> list[uuid.UUID]:
    """Return the id that Cato gave this conversation or message, if Cato exported it."""
    if conversation.provider != cato.PROVIDER:
        return []
    parsed = parse_uuid(id)
    return [parsed] if parsed else []


def _refusal(
    conversation: Conversation,
    thread_id: uuid.UUID,
    batch: Sequence[DatedPair],
    space: Space,
    person_id: uuid.UUID,
    *,
    is_new: bool,
) -> str:
    """Return why the batch must not be stored in the thread, whose row is locked; "" if it may.

    `is_new`: the import creates the thread with this batch, so that a missing thread was not deleted.
    """
    thread = Thread.objects.select_for_update().filter(id=thread_id).first()
    is_deleted = not is_new if thread is None else thread.deleted_at is not None
    if is_deleted:
        return _("Skipped: forgotten earlier.")
    if not memory.readable_spaces(person_id).filter(pk=space.pk).exists():
        return _("You are not a member of this space any more.")
    if _is_visible_to_others(conversation, thread_id, batch, space):
        return _("Skipped new messages: the thread is in another space.")
    return ""


def _is_visible_to_others(
    conversation: Conversation, thread_id: uuid.UUID, dated: Sequence[DatedPair], space: Space
) -> bool:
    """Return whether new text would be added to a thread that is in another space."""
    if not Thread.objects.filter(id=thread_id).exclude(space=space).exists():
        return False
    rows = Turn.objects.filter(thread_id=thread_id).values_list("id", "message", "answer")
    existing = {id: (message, answer) for id, message, answer in rows}

    def adds_text(item: DatedPair) -> bool:
        message, answer = existing[item.id]
        return bool(item.pair.answer and not answer) or (conversation.is_transcript and item.pair.message != message)

    return any(item.id not in existing or adds_text(item) for item in dated)
