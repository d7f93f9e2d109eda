"""Template rows of saved prompts: on their page, and in the list that opens with a slash."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from chat import prompt_library
from chat.models import SavedPrompt
from memory import api as memory
from memory.api import excerpt

# Characters of a text that are shown before it is unfolded, and in the list.
_EXCERPT_LENGTH = 160
_OFFERED_LENGTH = 80


@dataclass(frozen=True, slots=True)
class PromptRow:
    """A saved prompt on the page; the URLs are empty for people who may not change it."""

    id: uuid.UUID
    name: str
    excerpt: str
    text: str
    author_text: str
    created_at: datetime
    edited_at: datetime | None
    edit_url: str
    delete_url: str


@dataclass(frozen=True, slots=True)
class PromptSection:
    """The saved prompts of one space."""

    space_id: uuid.UUID
    kind: str
    name: str
    rows: Sequence[PromptRow]


@dataclass(frozen=True, slots=True)
class OfferedPromptRow:
    """A saved prompt in the list of the composer; `space_name` is empty for a personal one."""

    id: uuid.UUID
    name: str
    excerpt: str
    space_name: str
    text_url: str


def sections(person_id: uuid.UUID, prompts: Iterable[SavedPrompt]) -> list[PromptSection]:
    """Return the prompts, which are sorted by space, in sections of one space each."""
    of_spaces = [(space, list(rows)) for space, rows in groupby(prompts, key=lambda prompt: prompt.space)]
    managed = memory.managed_space_ids(person_id, [space for space, _rows in of_spaces])
    return [
        PromptSection(
            space_id=space.id,
            kind=space.kind,
            name=_("For you") if space.owner_id else space.display_name,
            rows=_prompt_rows(person_id, rows, is_managed=space.id in managed),
        )
        for space, rows in of_spaces
    ]


def offered_rows(person_id: uuid.UUID, beginning: str) -> list[OfferedPromptRow]:
    """Return the prompts to choose from whose names begin with what was typed."""
    return [
        OfferedPromptRow(
            id=prompt.id,
            name=prompt.name,
            excerpt=excerpt(prompt.text, _OFFERED_LENGTH),
            space_name="" if prompt.space.owner_id else prompt.space.display_name,
            text_url=reverse("saved_prompt_text", args=[prompt.id]),
        )
        for prompt in prompt_library.find_offered(person_id, beginning)
    ]


def _prompt_rows(person_id: uuid.UUID, prompts: Sequence[SavedPrompt], *, is_managed: bool) -> list[PromptRow]:
    rows = []
    for prompt in prompts:
        can_change = is_managed or prompt.author_id == person_id
        author = pgettext("author", "you") if prompt.author_id == person_id else prompt.author.name
        rows.append(
            PromptRow(
                id=prompt.id,
                name=prompt.name,
                excerpt=excerpt(prompt.text, _EXCERPT_LENGTH),
                text=prompt.text,
                author_text=_("Written by %(name)s") % {"name": author},
                created_at=prompt.created_at,
                edited_at=prompt.edited_at,
                edit_url=reverse("edit_saved_prompt", args=[prompt.id]) if can_change else "",
                delete_url=reverse("delete_saved_prompt", args=[prompt.id]) if can_change else "",
            )
        )
    return rows
