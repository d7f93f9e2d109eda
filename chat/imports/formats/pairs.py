"""The pairs of message and answer of an imported conversation, with all versions of messages and answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from chat.imports.formats.conversation import Conversation, Picture, Said, TextFile


@dataclass(frozen=True, slots=True)
class Pair:
    """A message and its answer, which can be ""; `id` is unique in the conversation, `parent_id` is "" of a first one.

    `version_of` is the id of the first pair of the message, which other versions of its answer have as well.
    """

    id: str
    message: str
    answer: str
    said_at: datetime | None
    answered_at: datetime | None
    model: str
    is_forgotten: bool
    files: tuple[TextFile, ...] = ()
    parent_id: str = ""
    is_active: bool = True
    pictures: tuple[Picture, ...] = ()
    edited_at: datetime | None = None
    version_of: str = ""


@dataclass(slots=True)
class _Draft:
    """A pair to which answers are added; `last` is the index of the last one, `first` the first pair of the message."""

    id: str
    said: Said
    parent: _Draft | None
    last: int
    answers: list[Said] = field(default_factory=list)
    first: _Draft | None = None


def pairs_of(conversation: Conversation) -> tuple[list[Pair], int]:
    """Return the messages with the joined answers that follow them, each after its parent.

    The first version of an answer has the id of the message, so that an answer that is imported later completes the pair;
    the other versions have the message as well. Also return the number of answers without a message.
    """
    drafts: list[_Draft] = []
    by_index: dict[int, _Draft] = {}
    seen: set[str] = set()
    unasked = 0
    for index, said in enumerate(conversation.messages):
        before = by_index.get(said.parent)
        if said.role == "user":
            # Ids can be repeated in a file; the position makes them unique, and is the same in the next import.
            own = said.id if said.id not in seen else f"{said.id}#{index}"
            draft = _Draft(own, said, before, index)
            drafts.append(draft)
        elif before is None:
            unasked += 1
            continue
        elif before.last == said.parent:
            draft = before
        else:
            above = _answers_above(conversation.messages, said)
            known = [answer for answer in before.answers if id(answer) in above]
            own = f"{before.id}/{said.id}"
            own = own if own not in seen else f"{own}#{index}"
            draft = _Draft(own, before.said, before.parent, index, known, before.first or before)
            drafts.append(draft)
        seen.add(draft.id)
        by_index[index] = draft
        if said.role == "assistant":
            draft.answers.append(said)
            draft.last = index
    active = _active_ids(conversation, by_index)
    return [_pair(draft, is_active=draft.id in active) for draft in drafts], unasked


def _answers_above(messages: Sequence[Said], said: Said) -> set[int]:
    """Return the `id()` of each answer on the way from its message to `said`."""
    above, index = set(), said.parent
    while index >= 0 and messages[index].role == "assistant":
        above.add(id(messages[index]))
        index = messages[index].parent
    return above


def _active_ids(conversation: Conversation, by_index: dict[int, _Draft]) -> set[str]:
    current = conversation.current if conversation.current >= 0 else len(conversation.messages) - 1
    draft = by_index.get(current)
    active: set[str] = set()
    while draft is not None:
        active.add(draft.id)
        draft = draft.parent
    return active


def _pair(draft: _Draft, *, is_active: bool) -> Pair:
    said, answers = draft.said, draft.answers
    return Pair(
        id=draft.id,
        message=said.text,
        answer="\n\n".join(answer.text for answer in answers),
        said_at=said.at,
        answered_at=next((answer.at for answer in reversed(answers) if answer.at), None),
        model=next((answer.model for answer in reversed(answers) if answer.model), ""),
        is_forgotten=said.is_forgotten,
        files=said.files,
        parent_id=draft.parent.id if draft.parent else "",
        is_active=is_active,
        pictures=said.pictures,
        edited_at=said.edited_at,
        version_of=draft.first.id if draft.first else "",
    )
