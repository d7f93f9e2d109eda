"""Files of imported messages, stored as attachments, and the turns to which they may be added."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from pathlib import PurePath

from django.core.files.base import ContentFile

from chat.attachments import store_text
from chat.imports.formats.conversation import TextFile
from chat.models import Attachment, Thread, Turn
from memory import api as memory
from memory.api import Space

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


def lock_turns(turn_ids: Collection[uuid.UUID], *, space: Space) -> list[Turn]:
    """Return those of these turns to which files may be added, with their threads locked until the transaction ends.

    Nothing is added to what was forgotten, to a deleted thread, or to one that was moved to another space, because others
    can read it.
    """
    thread_ids = Turn.objects.filter(id__in=turn_ids).values_list("thread_id", flat=True)
    threads = Thread.objects.select_for_update().filter(id__in=set(thread_ids), space=space, deleted_at=None)
    rows = Turn.objects.filter(id__in=turn_ids, thread__in=list(threads.order_by("id")))
    turns = list(rows.select_related("thread__space", "session").prefetch_related("attachments"))
    forgotten = memory.forgotten_ids(turn.effective_exchange_id for turn in turns if turn.effective_exchange_id)
    return [turn for turn in turns if turn.effective_exchange_id not in forgotten]


def text_name(name: str) -> str:
    """Return the name of the file with the text of `name`: its format would not be that of a PDF, for example."""
    name = memory.normalise_name(name)
    return name if PurePath(name).suffix.lower() in _TEXT_SUFFIXES else f"{name}.txt"
