"""Files of imported messages, stored as attachments."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import PurePath

from django.core.files.base import ContentFile

from chat.attachments import store_text
from chat.imports.formats.conversation import TextFile
from chat.models import Attachment, Turn
from memory import api as memory

_TEXT_SUFFIXES = (".txt", ".md")


def store_texts(files: Sequence[TextFile], turn: Turn) -> list[Attachment]:
    """Store the texts as files of the turn's author; their ids are derived from the turn."""
    return [
        store_text(
            ContentFile(file.text.encode(), name=text_name(file.name)),
            text=file.text,
            attachment_id=uuid.uuid5(turn.id, f"file {number}"),
            owner_id=turn.author_id,
        )
        for number, file in enumerate(files)
    ]


def text_name(name: str) -> str:
    """Return the name of the file with the text of `name`: its format would not be that of a PDF, for example."""
    name = memory.normalise_name(name)
    return name if PurePath(name).suffix.lower() in _TEXT_SUFFIXES else f"{name}.txt"
