"""Import what the export of an account of Cato contains beside threads: documents, instructions, opinions and more.

Instructions come back switched off: what stands in a file never applies by itself.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from shutil import copyfileobj

from django.core.files import File
from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from chat import access
from chat.attachments import add_attachments, read_attachment, save_attachment, store_documents
from chat.imports.extras import PartCounts
from chat.imports.files import lock_turns
from chat.imports.formats.archive import (
    ArchivedAttachment,
    ArchivedDocument,
    ArchivedExchange,
    ArchivedInstruction,
    ArchivedOpinion,
    ArchivedPart,
    ArchivedRecord,
    ArchivedStatement,
    ArchivedSupersession,
)
from chat.imports.formats.sources import ExportFiles
from chat.imports.statements import StatementImport
from chat.instructions import editing
from chat.models import Attachment, Instruction, Turn
from memory import api as memory
from memory.api import (
    CatoError,
    Chunk,
    Document,
    Exchange,
    Feedback,
    InvalidInputError,
    NewRecord,
    Record,
    Space,
    Supersession,
)

_MEMORY_BYTES = 5_000_000  # larger files are unpacked to a temporary file


@dataclass(slots=True)
class ArchiveImport:
    """An import of an export of Cato; `turn_ids` and `exchange_ids` are those of what was imported, by the exported ids."""

    files: ExportFiles
    space: Space
    person_id: uuid.UUID
    turn_ids: dict[str, uuid.UUID] = field(default_factory=dict)
    exchange_ids: dict[str, uuid.UUID] = field(default_factory=dict)
    statements: StatementImport = field(init=False)

    def __post_init__(self) -> None:
        self.statements = StatementImport(self.space, self.person_id, self._find)

    def add(self, part: ArchivedPart) -> PartCounts:
        """Import a part, unless it is there already or was forgotten."""
        counts = PartCounts()
        try:
            counts.count(self._add(part))
        except CatoError as error:
            counts.refused.append(str(error))
        return counts

    def _add(self, part: ArchivedPart) -> bool | None:
        """Import a part; return whether it is new, None if it or what it is about was forgotten. Raises CatoError."""
        match part:
            case ArchivedDocument():
                return self._add_document(part)
            case ArchivedAttachment():
                return self._add_attachment(part)
            case ArchivedInstruction():
                return self._add_instruction(part)
            case ArchivedOpinion():
                return self._add_opinion(part)
            case ArchivedRecord():
                return self._add_record(part)
            case ArchivedSupersession():
                return self._add_supersession(part)
            case ArchivedStatement():
                return self.statements.add(part)

    def _add_document(self, part: ArchivedDocument) -> bool | None:
        """Upload all versions of a document in their order; return whether any is new, None if it was forgotten.

        Only the last one is read. An interrupted import goes on with the versions that are missing.
        """
        if not part.files:
            raise InvalidInputError(_("Its original was not kept, so it is not in the export."))
        id = self._document_id(part.id)
        known = Document.objects.filter(id__in=filter(None, (id, memory.parse_uuid(part.id))), owner_id=self.person_id)
        document = known.first()
        if document is not None and document.forgotten_at:
            return None
        present = document.versions.count() if document is not None else 0
        if document is not None and (document.pk != id or present >= len(part.files)):
            return False
        for number, path in enumerate(part.files[present:], start=present + 1):
            document = Document.objects.filter(id=id).first()
            with self._opened(path) as file:
                memory.upload_document(
                    file,
                    name=part.title,
                    space=self.space,
                    owner_id=self.person_id,
                    source=Exchange.Source.IMPORT,
                    metadata=dict(part.metadata) if document is None else None,
                    version_of=document,
                    is_separate=document is None,
                    document_id=id if document is None else None,
                    is_replaced=number < len(part.files),
                )
        return True

    def _add_attachment(self, part: ArchivedAttachment) -> bool | None:
        """Attach a file to the imported turns that had it; return whether it is new, None if they were forgotten or moved."""
        if Attachment.objects.filter(id=memory.parse_uuid(part.id) or uuid.uuid4(), owner_id=self.person_id).exists():
            return False
        ids = [self.turn_ids[id] for id in part.turn_ids if id in self.turn_ids]
        id = uuid.uuid5(self.person_id, f"Cato/attachment/{part.id}")
        with transaction.atomic():
            turns = self._own_turns(ids)
        if not turns:
            return None
        if not part.path:
            raise InvalidInputError(_("The file was lost before the export."))
        if Attachment.objects.filter(id=id).exists():
            return False
        with self._opened(part.path) as file:
            file.name = part.title
            attachment = read_attachment(file, owner_id=self.person_id, attachment_id=id)
            with transaction.atomic():
                # They can have been forgotten while the file was read.
                if not (turns := self._own_turns(ids)):
                    return None
                save_attachment(attachment, file)
                for turn in turns:
                    add_attachments(turn, [*turn.attachments.all(), attachment])
                    if turn.exchange_id is not None:
                        store_documents(turn, [attachment])
        return True

    def _own_turns(self, ids: Collection[uuid.UUID]) -> list[Turn]:
        return [turn for turn in lock_turns(ids, space=self.space) if turn.author_id == self.person_id]

    def _add_instruction(self, part: ArchivedInstruction) -> bool:
        """Add an instruction that is switched off; return whether it is new. Raises PermissionDeniedError."""
        space = access.space_to_instruct(self.person_id, self.space.pk)
        if Instruction.objects.filter(space=space, text=part.text).exists():
            return False
        with transaction.atomic():
            editing.set_on(editing.add(space, part.text, by=self.person_id), False)
        return True

    def _add_opinion(self, part: ArchivedOpinion) -> bool | None:
        """Repeat an opinion about an imported turn or note; return whether it is new, None if that is not there."""
        found = self._find(part.exchange)
        if found is None:
            return None
        if Feedback.objects.filter(person_id=self.person_id, exchange=found).exists():
            return False
        memory.set_feedback(self.person_id, found, part.kind)
        return True

    def _add_record(self, part: ArchivedRecord) -> bool | None:
        """Store a record under its own id; return whether it is new, None if it was forgotten."""
        known = Record.objects.filter(space=self.space, name=part.id).select_related("exchange").first()
        if known is not None:
            self.exchange_ids[part.exchange_id] = known.exchange_id
            return None if known.exchange.forgotten_at else False
        record = NewRecord(part.id, part.text, part.metadata, part.vector, part.at)
        (self.exchange_ids[part.exchange_id],) = memory.upsert_records(
            [record], space=self.space, owner_id=self.person_id
        )
        return True

    def _add_supersession(self, part: ArchivedSupersession) -> bool | None:
        """Repeat a decision about two imported exchanges; return whether it is new, None if one of them is not there."""
        later, earlier = self._find(part.later), self._find(part.earlier)
        if later is None or earlier is None:
            return None
        if Supersession.objects.filter(person_id=self.person_id, later=later, earlier=earlier).exists():
            return False
        decision = memory.CONFIRMED if part.is_confirmed else memory.REJECTED
        memory.decide_supersession(self.person_id, later=later, earlier=earlier, decision=decision)
        return True

    def _find(self, named: ArchivedExchange) -> Exchange | None:
        """Return the exchange that the import stored for one of the export, or that one itself; None if it is gone."""
        candidates = [memory.parse_uuid(named.id), self.exchange_ids.get(named.id)]
        if turn_id := self.turn_ids.get(named.turn_id):
            candidates.append(Turn.objects.filter(id=turn_id).values_list("exchange_id", flat=True).first())
        if named.document_id:
            chunks = Chunk.objects.filter(version__document=self._document_id(named.document_id))
            live = chunks.filter(version=F("version__document__live_version"), index=named.chunk_index)
            candidates += live.values_list("exchange_id", flat=True)
        return (
            Exchange.objects.findable()
            .filter(id__in=filter(None, candidates), space=self.space)
            .select_related("owner")
            .first()
        )

    def _document_id(self, exported_id: str) -> uuid.UUID:
        return uuid.uuid5(self.person_id, f"Cato/document/{exported_id}")

    @contextmanager
    def _opened(self, path: str) -> Iterator[File[bytes]]:
        """Unpack a file of the export. Raises CatoError if it is missing, too large or damaged."""
        limit = memory.upload_limits().max_mb * 1_000_000
        with tempfile.SpooledTemporaryFile(_MEMORY_BYTES) as unpacked:
            with self.files.open(path, max_bytes=limit) as stream:
                copyfileobj(stream, unpacked)
            unpacked.seek(0)
            yield File(unpacked, name=PurePosixPath(path).name)
