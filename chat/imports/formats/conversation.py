"""Imported conversations, independent of their format, and their pairs of message and answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from django.utils.translation import gettext_noop

Role = Literal["user", "assistant"]

# The parts that are left out of a conversation and counted.
SYSTEM = gettext_noop("system and tool messages")
MEDIA = gettext_noop("images and files")
EMPTY = gettext_noop("empty messages")
UNASKED = gettext_noop("answers without a question")


@dataclass(frozen=True, slots=True)
class Said:
    """A message of the active branch; `at` is in UTC, None if unknown."""

    id: str
    role: Role
    text: str
    at: datetime | None
    model: str = ""
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """An imported conversation; `id` is that of the other product, `left_out` counts parts without text."""

    provider: str
    id: str
    title: str
    created_at: datetime | None
    messages: tuple[Said, ...]
    left_out: Mapping[str, int]
    is_remembered: bool = True


@dataclass(frozen=True, slots=True)
class Unread:
    """A conversation or file that could not be read."""

    title: str
    why: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A message and its answer, which can be ""; `id` is the message's and unique in the conversation."""

    id: str
    message: str
    answer: str
    said_at: datetime | None
    answered_at: datetime | None
    model: str
    is_forgotten: bool


@dataclass(slots=True)
class Notes:
    """Collects the messages of a conversation."""

    said: list[Said] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def say(self, id: str, role: Role, text: str, at: datetime | None, *, model: str = "", media: int = 0) -> None:
        """Add a message; one without text is counted, and replaced by "[image or file]" if it has media."""
        text = text.strip()
        if media:
            self.left_out[MEDIA] += media
            if not text and role == "user":
                text = "[image or file]"
        if not text:
            self.left_out[EMPTY] += not media
            return
        self.said.append(Said(id or f"#{len(self.said)}", role, text, at, model))


def pairs_of(conversation: Conversation) -> tuple[list[Pair], int]:
    """Return the messages, each with the joined answers that follow it, and the number of answers without a message."""
    asked: list[tuple[str, Said, list[Said]]] = []
    seen: set[str] = set()
    unasked = 0
    for number, said in enumerate(conversation.messages):
        if said.role == "user":
            # Ids can be repeated in a file; the position makes them unique, and is the same in the next import.
            own = said.id if said.id not in seen else f"{said.id}#{number}"
            seen.add(own)
            asked.append((own, said, []))
        elif asked:
            asked[-1][2].append(said)
        else:
            unasked += 1
    return [_pair(own, said, answers) for own, said, answers in asked], unasked


def _pair(id: str, said: Said, answers: Sequence[Said]) -> Pair:
    return Pair(
        id=id,
        message=said.text,
        answer="\n\n".join(answer.text for answer in answers),
        said_at=said.at,
        answered_at=next((answer.at for answer in reversed(answers) if answer.at), None),
        model=next((answer.model for answer in reversed(answers) if answer.model), ""),
        is_forgotten=said.is_forgotten,
    )
