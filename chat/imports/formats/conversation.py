"""A conversation as every importer gives it, whatever product it was held in, and its pairs of message and answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from django.utils.translation import gettext_noop

Role = Literal["user", "assistant"]

# What is left out of a conversation, as it is counted and told.
SYSTEM = gettext_noop("system and tool messages")
MEDIA = gettext_noop("images and files")
EMPTY = gettext_noop("empty messages")
UNASKED = gettext_noop("answers without a question")


@dataclass(frozen=True, slots=True)
class Said:
    """One message of the branch that stands. `at` is UTC, None where the file does not say when."""

    id: str
    role: Role
    text: str
    at: datetime | None
    model: str = ""
    is_forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Conversation:
    """What one product kept of one conversation, in the order it was said; `id` is that product's own.

    `left_out` counts what no text could be had from, by the words above.
    """

    provider: str
    id: str
    title: str
    created_at: datetime | None
    messages: tuple[Said, ...]
    left_out: Mapping[str, int]
    is_remembered: bool = True


@dataclass(frozen=True, slots=True)
class Unread:
    """What could not be read: its title, or the file's name, and why, in a sentence."""

    title: str
    why: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A message and its answer, "" where there is none; `id` is the message's and unique in its conversation."""

    id: str
    message: str
    answer: str
    said_at: datetime | None
    answered_at: datetime | None
    model: str
    is_forgotten: bool


@dataclass(slots=True)
class Notes:
    """What an importer writes down while it walks along a branch."""

    said: list[Said] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def say(self, id: str, role: Role, text: str, at: datetime | None, *, model: str = "", media: int = 0) -> None:
        """Add a message; one without a text is counted, and stands as "[image or file]" where that is all."""
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
    """Its messages, each with the answers that follow it joined, and the number of answers that nobody asked for."""
    asked: list[tuple[str, Said, list[Said]]] = []
    seen: set[str] = set()
    unasked = 0
    for number, said in enumerate(conversation.messages):
        if said.role == "user":
            # A file may give the same id twice; the place tells them apart, and is the same next time.
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
