"""Pictures of imported messages, which are files of the export, stored as attachments of their turns."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from django.conf import settings
from django.core.files.base import ContentFile
from django.db import transaction

from chat.attachments import add_attachments, store_image
from chat.imports.files import lock_turns
from chat.imports.formats.conversation import Picture
from chat.imports.formats.sources import ExportFiles
from chat.imports.turns import DatedPair, store_exchanges
from chat.models import Attachment, Turn
from memory.api import CatoError, Space

# ChatGPT's names of files begin with their ids: file-2bXq-boat.png, file_0000a1-sanitized.png.
_ID = re.compile(r"file[-_][0-9A-Za-z]+")


@dataclass(slots=True)
class PictureImport:
    """Adds the pictures of an export to imported turns.

    `attached` has the ids of the attachments of all turns until now; `paths` the files, by the ids in their names.
    """

    files: ExportFiles
    space: Space
    attached: set[uuid.UUID] = field(default_factory=set, init=False)
    paths: dict[str, str] | None = field(default=None, init=False)

    def add(self, pairs: Sequence[DatedPair]) -> int:
        """Attach what the turns of these pairs lack; return how many more pictures are attached, new or not.

        Messages no longer name what is attached. The turns are those that `lock_turns` returns: messages can have been
        forgotten, and threads deleted or moved, since the turns were saved.
        """
        with_pictures = {item.id: item.pair.pictures for item in pairs if item.pair.pictures}
        if not with_pictures:
            return 0
        before = len(self.attached)
        for id, pictures in with_pictures.items():
            with transaction.atomic():
                for turn in lock_turns([id], space=self.space):
                    self._attach(turn, pictures)
        return len(self.attached) - before

    def _attach(self, turn: Turn, pictures: Sequence[Picture]) -> None:
        rows = {row.id: row for row in turn.attachments.all()}
        added = []
        for picture in pictures:
            # All versions of a message share the file, as they do when an answer is generated again.
            id = uuid.uuid5(turn.thread_id, f"picture {picture.message_id}/{picture.id}")
            if id not in rows and len(rows) < settings.CATO.chat.max_attachments:
                row = Attachment.objects.filter(id=id).first() or self._store(id, picture, turn)
                if row is None:
                    continue
                rows[id] = row
                added.append(picture)
            if id in rows:
                self.attached.add(id)
        if added:
            add_attachments(turn, list(rows.values()))
            _remove_names(turn, added)

    def _store(self, id: uuid.UUID, picture: Picture, turn: Turn) -> Attachment | None:
        """Store a picture; None if it is missing, damaged, too large or not a picture."""
        path = self._find(picture.id)
        if path is None:
            return None
        max_bytes = settings.CATO.chat.max_image_mb * 1_000_000
        try:
            with self.files.open(path, max_bytes=max_bytes) as stream:
                # A byte more than allowed, so that a larger file of a folder, whose size is not known here, is refused.
                content = ContentFile(stream.read(max_bytes + 1), name=picture.name or PurePosixPath(path).name)
            return store_image(content, owner_id=turn.author_id, attachment_id=id)
        except CatoError:
            return None

    def _find(self, id: str) -> str | None:
        if self.paths is None:
            found = ((_ID.match(PurePosixPath(path).name), path) for path in sorted(self.files.names(), reverse=True))
            self.paths = {match[0]: path for match, path in found if match}
        return self.paths.get(id)


def _remove_names(turn: Turn, pictures: Sequence[Picture]) -> None:
    """Remove the lines that name these pictures from the end of the message, unless it has no other text."""
    lines = turn.message.splitlines()[::-1]
    for picture in pictures:
        if (line := f"[{picture.name}]") in lines:
            lines.remove(line)
    message = "\n".join(lines[::-1]).strip()
    if message in ("", turn.message):
        return
    turn.message = message
    turn.revision += 1
    turn.save(update_fields=["message", "revision"])
    if turn.exchange_id is not None:
        store_exchanges(turn.thread, turn.session, [turn])
