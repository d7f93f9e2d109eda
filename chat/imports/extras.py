"""Import what is no conversation: documents and notes into memory, instructions as saved prompts.

Instructions of another product never apply by themselves: the person uses the prompt where they want them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from django.core.files.base import ContentFile
from django.utils.translation import gettext as _

from chat import prompt_library
from chat.errors import ConflictError, InvalidNameError
from chat.imports.files import text_name
from chat.imports.formats.extras import Memories, Project
from chat.models import SavedPrompt
from memory import api as memory
from memory.api import Document, Exchange, InvalidInputError, Space, VectorStoreDisabledError

_REFUSED = (ConflictError, InvalidInputError, VectorStoreDisabledError)


@dataclass(slots=True)
class PartCounts:
    """How many parts were new, were already there, were forgotten earlier, and could not be stored (with the reasons)."""

    new: int = 0
    already_there: int = 0
    forgotten: int = 0
    refused: list[str] = field(default_factory=list)

    def count(self, is_new: bool | None) -> None:
        """Count a part. `is_new` is False for one that was there already, None for one that was forgotten."""
        self.new += is_new is True
        self.already_there += is_new is False
        self.forgotten += is_new is None


def import_project(project: Project, *, space: Space, person_id: uuid.UUID) -> PartCounts:
    """Save the instructions of a project as a prompt and its documents as documents, into a personal space."""
    counts = PartCounts()
    if project.instructions:
        _count(
            counts, partial(save_instructions, project.title, project.instructions, space=space, person_id=person_id)
        )
    for document in project.documents:
        id = uuid.uuid5(person_id, f"{project.provider}/project/{project.id}/{document.id}")
        name = f"{' '.join(memory.normalise_name(project.title.replace('/', ' ')).split())}/{text_name(document.file.name)}"
        _count(counts, partial(_save_document, id, name, document.file.text, space, person_id))
    return counts


def import_memories(memories: Memories, *, space: Space, person_id: uuid.UUID) -> PartCounts:
    """Store the memories of another product as notes in a personal space."""
    counts = PartCounts()
    for id, text in memories.texts.items():
        note_id = imported_note_id(memories, id, person_id)
        _count(counts, partial(_save_note, note_id, memory.parse_uuid(id), text, memories, space, person_id))
    return counts


def imported_note_id(memories: Memories, id: str, person_id: uuid.UUID) -> uuid.UUID:
    """Return the id of the note that one of the memories becomes."""
    return uuid.uuid5(person_id, f"{memories.provider}/memories/{id}/{memory.content_hash(memories.texts[id])}")


def save_instructions(name: str, text: str, *, space: Space, person_id: uuid.UUID) -> bool:
    """Save instructions as a prompt of the space's owner; return whether it is new.

    Raises InvalidNameError, InvalidMessageError, and ConflictError if there are too many.
    """
    if SavedPrompt.objects.filter(space=space, text=text.strip()).exists():
        return False
    words = "".join(character if character.isalnum() else " " for character in name).split()
    own = "-".join(words)[: SavedPrompt.MAX_NAME_LENGTH - 4] or "imported"
    for number in range(1, 100):
        candidate = own if number == 1 else f"{own}-{number}"
        try:
            prompt_library.add(space, name=candidate, text=text, by=person_id)
        except InvalidNameError:  # the name is taken, or that of a command
            continue
        return True
    raise InvalidNameError(_("There are too many prompts named %(name)s.") % {"name": own})


def _save_document(id: uuid.UUID, name: str, text: str, space: Space, person_id: uuid.UUID) -> bool | None:
    """Upload a document; return whether it is new, None if it was forgotten."""
    known = Document.objects.filter(id=id).first()
    if known is not None:
        return None if known.forgotten_at else False
    memory.upload_document(
        ContentFile(text.encode()),
        name=name,
        space=space,
        owner_id=person_id,
        source=Exchange.Source.IMPORT,
        is_separate=True,
        document_id=id,
    )
    return True


def _save_note(
    id: uuid.UUID, exported_id: uuid.UUID | None, text: str, memories: Memories, space: Space, person_id: uuid.UUID
) -> bool | None:
    """Store a note; return whether it is new, None if it was forgotten."""
    # A note that was exported from here has its own id.
    known = Exchange.objects.filter(id__in=filter(None, (id, exported_id)), owner_id=person_id).first()
    if known is not None:
        return None if known.forgotten_at else False
    memory.add_note(
        text,
        space=space,
        owner_id=person_id,
        source=Exchange.Source.IMPORT,
        manual_entry=True,
        timestamp=memories.at,
        note_id=id,
    )
    return True


def _count(counts: PartCounts, save: Callable[[], bool | None]) -> None:
    try:
        counts.count(save())
    except _REFUSED as error:
        counts.refused.append(str(error))
