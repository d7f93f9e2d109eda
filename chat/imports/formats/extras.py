"""What an export contains beside conversations: projects and memories of Claude."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from chat.imports.formats.claude import PROVIDER
from chat.imports.formats.conversation import TextFile
from chat.imports.formats.values import Fields, fields_in, moment_in, name_in, rows_in, text_in

MEMORIES = "Memories"


@dataclass(frozen=True, slots=True)
class ProjectDocument:
    """A document of a project; `id` is that of the other product."""

    id: str
    file: TextFile


@dataclass(frozen=True, slots=True)
class Project:
    """A project with its instructions and documents."""

    provider: str
    id: str
    title: str
    instructions: str
    documents: tuple[ProjectDocument, ...]


@dataclass(frozen=True, slots=True)
class Memories:
    """The memories of a product about its user: the texts by ids."""

    provider: str
    title: str
    texts: dict[str, str]
    at: datetime | None


def is_project(item: Fields) -> bool:
    """Return whether the object is a project of Claude."""
    return isinstance(item.get("docs"), list) or isinstance(item.get("prompt_template"), str)


def read_project(item: Fields) -> Project:
    """Parse the project; documents without text are left out."""
    title = " ".join(text_in(item.get("name")).split())
    documents = (
        ProjectDocument(
            name_in(row.get("uuid")) or text_in(row.get("filename")),
            TextFile(text_in(row.get("filename")), text_in(row.get("content"))),
        )
        for row in rows_in(item.get("docs"))
    )
    return Project(
        provider=PROVIDER,
        id=name_in(item.get("uuid")) or title,
        title=title or PROVIDER,
        instructions=text_in(item.get("prompt_template")).strip(),
        documents=tuple(document for document in documents if document.file.text.strip()),
    )


def is_memories(item: Fields) -> bool:
    """Return whether the object has the memories of Claude."""
    return "conversations_memory" in item or "project_memories" in item


def read_memories(item: Fields) -> Memories:
    """Parse the memories of conversations and of projects."""
    texts = {"": text_in(item.get("conversations_memory"))}
    texts |= {text_in(id): text_in(text) for id, text in fields_in(item.get("project_memories")).items()}
    at = moment_in(item.get("updated_at")) or moment_in(item.get("created_at"))
    return Memories(PROVIDER, f"{PROVIDER}: {MEMORIES}", {id: text for id, text in texts.items() if text.strip()}, at)
