"""Imported conversations, independent of their format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from django.utils.translation import gettext_noop

Role = Literal["user", "assistant"]

FILE = "file"  # the name of one without a name
# The parts that are left out of a conversation and counted.
SYSTEM = gettext_noop("system and tool messages")
MEDIA = gettext_noop("images and files")
LABELS = gettext_noop("tags and folders")
# The items that are not imported at all, and counted.
UNREADABLE = gettext_noop("unreadable")
UNKNOWN = gettext_noop("of an unknown format")
WITHOUT_MESSAGES = gettext_noop("without messages")
FORGOTTEN = gettext_noop("forgotten earlier")
REFUSED = gettext_noop("not possible to store")
EMPTY = gettext_noop("empty messages")
UNASKED = gettext_noop("answers without a question")


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file of a message, of which the export has the text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a message, by the id that begins the name of its file in the export."""

    id: str
    name: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Said:
    """A message; `at` is in UTC, None if unknown. `parent` is the index of the one before it, -1 of a first one.

    `edited_at`: when a message of this part of a transcript was edited last.
    """

    id: str
    role: Role
    text: str
    at: datetime | None
    model: str = ""
    is_forgotten: bool = False
    files: tuple[TextFile, ...] = ()
    parent: int = -1
    pictures: tuple[Picture, ...] = ()
    edited_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Conversation:
    """An imported conversation; `id` is that of the other product, `left_out` counts parts without text.

    `messages` has all branches, each message after its parent; `current` is the index of the last one of the active branch.
    The messages of a transcript are what people wrote to each other, without answers. `author` is the name of the
    person who wrote all messages, "" if the file does not say it.
    """

    provider: str
    id: str
    title: str
    created_at: datetime | None
    messages: tuple[Said, ...]
    left_out: Mapping[str, int]
    is_remembered: bool = True
    current: int = -1
    is_pinned: bool = False
    is_archived: bool = False
    instructions: str = ""
    is_transcript: bool = False
    author: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """A conversation or file that could not be read; `kind` is what the report counts it as."""

    title: str
    why: str
    kind: str


@dataclass(slots=True)
class Notes:
    """Collects the messages of a conversation, each after its parent."""

    said: list[Said] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def say(
        self,
        id: str,
        role: Role,
        text: str,
        at: datetime | None,
        *,
        model: str = "",
        media: int = 0,
        names: Sequence[str] = (),
        files: Sequence[TextFile] = (),
        parent: int = -1,
        pictures: Sequence[Picture] = (),
    ) -> int:
        """Add a message with the texts of its files, and return its index.

        One without text is counted instead, and the index is that of its parent.

        `media` is the number of images and files without text. They are counted and the message says their `names`,
        those of `pictures` until their files are found in the export; a message that has nothing else is
        "[image or file]" if they have none.
        """
        text = text.strip()
        self.left_out[MEDIA] += media
        if role == "user":
            named = "\n".join(f"[{name}]" for name in [*(file.name for file in files if not text), *names] if name)
            text = "\n\n".join(filter(None, (text, named))) or ("[image or file]" if media else "")
        if not text:
            self.left_out[EMPTY] += not media
            return parent
        own = id or f"#{len(self.said)}"
        self.said.append(Said(own, role, text, at, model, files=tuple(files), parent=parent, pictures=tuple(pictures)))
        return len(self.said) - 1
