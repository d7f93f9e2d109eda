"""LibreChat: a list of messages with parents, or a tree of messages under `messagesTree`."""

from __future__ import annotations

from chat.imports.formats.branches import all_branches, current_leaf
from chat.imports.formats.conversation import FILE, LABELS, SYSTEM, Conversation, Notes, Role, TextFile
from chat.imports.formats.values import Fields, fields_in, moment_in, name_in, rows_in, text_in

PROVIDER = "LibreChat"


def knows(item: Fields) -> bool:
    """Return whether the object is a LibreChat conversation."""
    has_messages = isinstance(item.get("messages"), list) or isinstance(item.get("messagesTree"), list)
    return has_messages and bool(name_in(item.get("conversationId")))


def read(item: Fields) -> Conversation:
    """Parse all branches; the latest is active, because the file does not record which one was."""
    rows = _flat(rows_in(item.get("messagesTree"))) or _flat(rows_in(item.get("messages")))
    by_id = {name_in(row.get("messageId")): row for row in rows}
    times = {id: moment_in(row.get("createdAt")) for id, row in by_id.items()}
    parents = {id: name_in(row.get("parentMessageId")) for id, row in by_id.items()}
    leaf = current_leaf(parents, times)
    notes = Notes()
    said: dict[str, int] = {}
    for id, parent in all_branches(parents, times, leaf):
        said[id] = _note(notes, id, by_id[id], said.get(parent, -1))
    tags = item.get("tags")
    notes.left_out[LABELS] += len(tags) if isinstance(tags, list) else 0
    return Conversation(
        provider=PROVIDER,
        id=name_in(item.get("conversationId")),
        title=text_in(item.get("title")),
        created_at=moment_in(item.get("createdAt")),
        messages=tuple(notes.said),
        left_out=notes.left_out,
        current=said.get(leaf, -1),
        is_archived=item.get("isArchived") is True,
    )


def _flat(rows: list[Fields]) -> list[Fields]:
    """Return the messages and their descendants, each before its children."""
    flat, pending = [], rows[::-1]
    while pending:
        row = pending.pop()
        flat.append(row)
        pending += rows_in(row.get("children"))[::-1]
    return flat


def _note(notes: Notes, id: str, row: Fields, parent: int) -> int:
    if row.get("error") is True:  # an error message in place of an answer
        notes.left_out[SYSTEM] += 1
        return parent
    parts = rows_in(row.get("content"))
    texts = [_text(part) for part in parts if part.get("type") == "text"]
    attached = rows_in(row.get("files"))
    files = [
        TextFile(text_in(file.get("filename")) or FILE, text)
        for file in attached
        if (text := text_in(file.get("text"))).strip()
    ]
    media = sum(part.get("type") in ("image_file", "image_url") for part in parts) + len(attached) - len(files)
    notes.left_out[SYSTEM] += sum(part.get("type") in ("think", "tool_call") for part in parts)
    role: Role = "user" if row.get("isCreatedByUser") is True else "assistant"
    return notes.say(
        id,
        role,
        "\n\n".join(filter(None, texts)) or text_in(row.get("text")),
        moment_in(row.get("createdAt")),
        model=text_in(row.get("model")) if role == "assistant" else "",
        media=media,
        names=[text_in(file.get("filename")) for file in attached if not text_in(file.get("text")).strip()],
        files=files,
        parent=parent,
    )


def _text(part: Fields) -> str:
    """Return the text of a part, which is a string or an object with a `value`."""
    return text_in(part.get("text")) or text_in(fields_in(part.get("text")).get("value"))
